package bolt

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math/bits"
	"os"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// The layout of bbolt's two meta pages, at the first two pages of a file: a
// page header, then, in the machine's own byte order,
//
//	magic, version, page size, flags          uint32 each
//	root: page, sequence                      uint64 each
//	freelist page, high water, transaction    uint64 each
//	checksum: FNV-1a of all of the above      uint64
const (
	pageHeaderSize = 16
	metaSize       = 64
	checksumAt     = 56

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	noFreelist = 1<<64 - 1

	// The page sizes that bbolt looks for when the first meta page is broken.
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// meta is what one meta page says.
type meta struct {
	pageSize  int64
	root      uint64 // the page of the root bucket
	freelist  uint64 // the page of the list of free pages
	highWater uint64 // the first page beyond those in use
	txid      uint64 // the transaction that wrote it
}

// checkFile returns kv.ErrDamaged, with what is wrong, unless file is a bbolt
// file that has all the pages that it says it has. bbolt itself would take an
// empty file for a new one, and read beyond the end of one that is cut short.
func checkFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size == 0 {
		return errors.Wrap(kv.ErrDamaged, "the file is empty")
	}
	if size < 2*minPageSize {
		return errors.Wrapf(kv.ErrDamaged, "the file is too short, with %d bytes", size)
	}
	m, err := newestMeta(file, size)
	if err != nil {
		return err
	}
	if m.highWater > uint64(size/m.pageSize) {
		return errors.Wrapf(kv.ErrDamaged, "the file is cut short: %d bytes of at least %d pages of %d bytes",
			size, m.highWater, m.pageSize)
	}
	if m.root >= m.highWater || m.freelist >= m.highWater && m.freelist != noFreelist {
		return errors.Wrap(kv.ErrDamaged, "the meta page points beyond the pages in use")
	}
	return nil
}

// newestMeta returns the meta page that bbolt would go by: of the valid ones,
// that of the later transaction.
func newestMeta(file *os.File, size int64) (meta, error) {
	first, firstErr := readMeta(file, 0)
	if firstErr == nil {
		second, err := readMeta(file, first.pageSize)
		if err == nil && second.txid > first.txid {
			return second, nil
		}
		return first, nil
	}
	// The second one begins where the first page ends, and only it knows where.
	for at := int64(minPageSize); at <= maxPageSize && at < size; at *= 2 {
		second, err := readMeta(file, at)
		if err == nil && second.pageSize == at {
			return second, nil
		}
	}
	return meta{}, firstErr
}

// readMeta reads the meta page at an offset. It returns kv.ErrDamaged when
// there is no valid one.
func readMeta(file *os.File, at int64) (meta, error) {
	var page [pageHeaderSize + metaSize]byte
	if _, err := file.ReadAt(page[:], at); errors.Is(err, io.EOF) {
		return meta{}, errors.Wrap(kv.ErrDamaged, "the file is too short")
	} else if err != nil {
		return meta{}, err
	}
	b, order := page[pageHeaderSize:], binary.NativeEndian
	if order.Uint32(b) != metaMagic {
		return meta{}, errors.Wrap(kv.ErrDamaged, "not a bbolt file")
	}
	if version := order.Uint32(b[4:]); version != metaVersion {
		return meta{}, errors.Wrapf(kv.ErrDamaged, "the file is of bbolt format %d, and only %d can be read",
			version, metaVersion)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:checksumAt]) // a hash cannot fail
	if sum.Sum64() != order.Uint64(b[checksumAt:]) {
		return meta{}, errors.Wrap(kv.ErrDamaged, "the checksum of the meta page is wrong")
	}
	pageSize := order.Uint32(b[8:])
	if pageSize < minPageSize || pageSize > maxPageSize || bits.OnesCount32(pageSize) != 1 {
		return meta{}, errors.Wrapf(kv.ErrDamaged, "the page size %d is impossible", pageSize)
	}
	return meta{
		pageSize:  int64(pageSize),
		root:      order.Uint64(b[16:]),
		freelist:  order.Uint64(b[32:]),
		highWater: order.Uint64(b[40:]),
		txid:      order.Uint64(b[48:]),
	}, nil
}
