package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"agentrun/storage/kv"
)

// wholeFile returns the bytes of a store with some thousands of pairs, made of
// pages of the given size.
func wholeFile(t *testing.T, pageSize int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		err := db.Update(func(tx *bbolt.Tx) error {
			for _, space := range []string{"good", "bad"} {
				bucket, err := tx.CreateBucketIfNotExists([]byte(space))
				if err != nil {
					return err
				}
				for j := range 1000 {
					key := fmt.Appendf(nil, "%s-%d-%04d", space, i, j)
					if err := bucket.Put(key, bytes.Repeat([]byte{'v'}, 50)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, path)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeFile(t *testing.T, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "test.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bytesInUse returns how much of a store's file its newest meta page needs.
func bytesInUse(content []byte) int {
	pageSize := os.Getpagesize()
	var newest, pages uint64
	for _, at := range []int{0, pageSize} {
		fields := content[at+pageHeaderSize:]
		if txid := binary.NativeEndian.Uint64(fields[48:]); txid >= newest {
			newest, pages = txid, binary.NativeEndian.Uint64(fields[40:])
		}
	}
	return int(pages) * pageSize
}

// setMeta changes the fields of both meta pages, and makes the checksums right.
func setMeta(content []byte, pageSize int, change func(fields []byte)) []byte {
	content = bytes.Clone(content)
	for _, at := range []int{0, pageSize} {
		fields := content[at+pageHeaderSize:][:metaSize]
		change(fields)
		sum := fnv.New64a()
		_, _ = sum.Write(fields[:checksumAt])
		binary.NativeEndian.PutUint64(fields[checksumAt:], sum.Sum64())
	}
	return content
}

// damagedFile is a file that is to be refused, and what the error says.
type damagedFile struct {
	content []byte
	says    string
}

func damagedFiles(t *testing.T) map[string]damagedFile {
	pageSize := os.Getpagesize()
	whole := wholeFile(t, pageSize)
	garbage := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(garbage) // cannot fail
	order := binary.NativeEndian
	field32 := func(at int, v uint32) []byte {
		return setMeta(whole, pageSize, func(f []byte) { order.PutUint32(f[at:], v) })
	}
	field64 := func(at int, v uint64) []byte {
		return setMeta(whole, pageSize, func(f []byte) { order.PutUint64(f[at:], v) })
	}
	noSums := bytes.Clone(whole)
	noSums[pageHeaderSize+checksumAt]++
	noSums[pageSize+pageHeaderSize+checksumAt]++
	noTypes := bytes.Clone(whole)
	for at := 2 * pageSize; at < len(whole); at += pageSize {
		clear(noTypes[at:][:pageHeaderSize])
	}
	return map[string]damagedFile{
		"empty":                {nil, "the file is empty"},
		"100 bytes":            {whole[:100], "the file is too short, with 100 bytes"},
		"one page":             {whole[:pageSize], "the file is cut short"},
		"half":                 {whole[:len(whole)/2], "the file is cut short"},
		"without an end":       {whole[:bytesInUse(whole)-1], "the file is cut short"},
		"zeros":                {make([]byte, 64<<10), "not a bbolt file"},
		"garbage":              {garbage, "not a bbolt file"},
		"text":                 {bytes.Repeat([]byte("text\n"), 10_000), "not a bbolt file"},
		"another version":      {field32(4, 3), "the file is of bbolt format 3, and only 2 can be read"},
		"page size":            {field32(8, 1000), "the page size 1000 is impossible"},
		"checksums":            {noSums, "the checksum of the meta page is wrong"},
		"root beyond the end":  {field64(16, 1<<40), "points beyond the pages in use"},
		"list beyond the end":  {field64(32, 1<<40), "points beyond the pages in use"},
		"far too many pages":   {field64(40, 1<<63), "the file is cut short"},
		"pages without a type": {noTypes, "invalid freelist page"},
	}
}

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	for name, test := range damagedFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, test.content)
			db, err := Open(path, Options{})
			if err == nil {
				t.Fatal("the file was opened", db.Close())
			}
			if !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("open returned %v, want %v", err, kv.ErrDamaged)
			}
			for _, part := range []string{path, test.says} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has more than one line", err)
			}
			if !bytes.Equal(readFile(t, path), test.content) {
				t.Error("the file was changed")
			}
			// The lock has to be free again.
			if _, err := Open(path, Options{}); !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("open again returned %v, want %v", err, kv.ErrDamaged)
			}
		})
	}
}

// TestOneMetaPage opens files of which one meta page is broken, as it is when
// the power fails while it is written.
func TestOneMetaPage(t *testing.T) {
	t.Parallel()
	for _, pageSize := range []int{1 << 10, 4 << 10, 16 << 10, 64 << 10} {
		whole := wholeFile(t, pageSize)
		for _, at := range []int{-1, 0, pageSize} {
			t.Run(fmt.Sprintf("pages of %d, broken at %d", pageSize, at), func(t *testing.T) {
				t.Parallel()
				content := bytes.Clone(whole)
				if at >= 0 {
					copy(content[at+pageHeaderSize:], "broken")
				}
				db := openPath(t, writeFile(t, content), Options{})
				if err := putOne(t, db, "k", 1); err != nil {
					t.Error(err)
				}
				if n := size(t, db, "k"); n != 1 {
					t.Errorf("the value has %d bytes, want 1", n)
				}
			})
		}
	}
}

// TestInUse opens a store that is open, and, as a live one may look between two
// writes, damaged.
func TestInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	db := openPath(t, path, Options{})
	if err := putOne(t, db, "k", 1); err != nil {
		t.Fatal(err)
	}
	want := "another agentrun is using " + path
	_, err := Open(path, Options{})
	if !errors.Is(err, kv.ErrInUse) || !strings.Contains(err.Error(), want) {
		t.Errorf("open returned %v, want %q and %v", err, want, kv.ErrInUse)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("open of a file in change returned %v, want %v", err, kv.ErrInUse)
	}
}

// TestNotAFile opens what is not a regular file, or may not be written.
func TestNotAFile(t *testing.T) {
	folder := t.TempDir()
	if _, err := Open(folder, Options{}); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("open of a folder returned %v", err)
	}
	pipe := filepath.Join(folder, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe, Options{}); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("open of a pipe returned %v", err)
	}
	missing := filepath.Join(folder, "missing", "test.db")
	if _, err := Open(missing, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open in a folder that is not there returned %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	if err := openPath(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, path)
	for _, folder := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, filepath.Join(filepath.Dir(path), "other.db")} {
		errs := make(chan error)
		go func() {
			// Root may write everything; the thread that ends here may not.
			runtime.LockOSThread()
			if os.Geteuid() == 0 {
				_ = unix.Setfsuid(65534)
			}
			_, err := Open(path, Options{})
			errs <- err
		}()
		err := <-errs
		if os.Geteuid() != 0 && strings.HasSuffix(path, "other.db") {
			continue // the folder is this user's
		}
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Errorf("open of %s returned %v, want %v", path, err, fs.ErrPermission)
		}
	}
	if !bytes.Equal(readFile(t, path), before) {
		t.Error("the file was changed")
	}
}
