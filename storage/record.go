package storage

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// A record on disk is
//
//	1 byte   recordVersion
//	4 bytes  CRC-32C, big endian
//	…        JSON
//
// The checksum covers the version, the space, the key and the JSON, so that a
// flipped bit and a value under a wrong key both become ErrDamagedRecord
// instead of a wrong answer.
const (
	recordVersion = 1
	recordHeader  = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord returns the bytes of rec as they are kept at space and key.
func encodeRecord(space string, key []byte, rec any) ([]byte, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return nil, errors.Wrapf(err, "%s %x", space, key)
	}
	out := make([]byte, recordHeader, recordHeader+len(body))
	out[0] = recordVersion
	out = append(out, body...)
	binary.BigEndian.PutUint32(out[1:recordHeader], checksum(space, key, out))
	return out, nil
}

// decodeRecord fills rec from the bytes kept at space and key.
func decodeRecord(space string, key, raw []byte, rec any) error {
	switch {
	case len(raw) < recordHeader:
		return errors.Wrapf(ErrDamagedRecord, "%s %x: %d bytes", space, key, len(raw))
	case raw[0] != recordVersion:
		return errors.Wrapf(ErrDamagedRecord, "%s %x: record version %d", space, key, raw[0])
	case binary.BigEndian.Uint32(raw[1:recordHeader]) != checksum(space, key, raw):
		return errors.Wrapf(ErrDamagedRecord, "%s %x: checksum", space, key)
	}
	if err := json.Unmarshal(raw[recordHeader:], rec); err != nil {
		return errors.Wrapf(ErrDamagedRecord, "%s %x: %v", space, key, err)
	}
	return nil
}

func checksum(space string, key, raw []byte) uint32 {
	var lengths [5]byte
	lengths[0] = raw[0]
	binary.BigEndian.PutUint16(lengths[1:], uint16(len(space)))
	binary.BigEndian.PutUint16(lengths[3:], uint16(len(key)))
	sum := crc32.Update(0, castagnoli, lengths[:])
	sum = crc32.Update(sum, castagnoli, []byte(space))
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, raw[recordHeader:])
}

// get returns the record at key, or nil when there is none.
func get[R any](r kv.Reader, space string, key []byte) (*R, error) {
	raw, err := r.Get(space, key)
	if err != nil || raw == nil {
		return nil, err
	}
	rec := new(R)
	if err := decodeRecord(space, key, raw, rec); err != nil {
		return nil, err
	}
	return rec, nil
}

// put writes rec at key.
func put[R any](tx kv.Tx, space string, key []byte, rec R) error {
	raw, err := encodeRecord(space, key, rec)
	if err != nil {
		return err
	}
	return tx.Put(space, key, raw)
}

// scan returns the records of a range, in its order, each handed to fn with its
// key. The key is valid only during the call.
func scan[R any](r kv.Reader, rng kv.Range, fn func(key []byte, rec R) error) error {
	pairs, err := r.Scan(rng)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		var rec R
		if err := decodeRecord(rng.Space, p.Key, p.Value, &rec); err != nil {
			return err
		}
		if err := fn(p.Key, rec); err != nil {
			return err
		}
	}
	return nil
}

// sequence returns the key of element seq of a list that belongs to owner.
func sequence(owner []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(join(owner), seq)
}
