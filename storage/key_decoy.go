package storage

import (
	"crypto/sha256"
	"strings"
	"time"

	"agentrun/storage/kv"
)

// decoy is what is read for a key that nobody has, so that the answer takes as
// long as that to a key which is disabled: one more look-up, and two records to
// decode. Otherwise its time would tell that a key was right once.
var decoy = newDecoy()

type decoyKey struct{ index, record, hash, id []byte }

func newDecoy() decoyKey {
	hash := sha256.Sum256(nil)
	rec := keyRecord{
		Name: "default", Prefix: strings.Repeat("0", keyShown), Hash: hash[:], Disabled: true, CreatedBy: "operator",
		CreatedAt: time.Unix(1<<30, 123456789).UTC(), LastUsedAt: time.Unix(1<<30, 123456789).UTC(),
	}
	d := decoyKey{hash: hash[:], id: rec.ID.UUID[:]}
	var err error
	if d.index, err = encodeRecord(spaceKeyHashes, d.hash, ref[KeyID]{rec.ID}); err == nil {
		d.record, err = encodeRecord(spaceKeys, d.id, rec)
	}
	if err != nil {
		panic(err) // Both are constants that can be encoded.
	}
	return d
}

// lookUp does what is done for a key that is there, and returns nil.
func (d decoyKey) lookUp(r kv.Reader) error {
	if err := decodeRecord(spaceKeyHashes, d.hash, d.index, new(ref[KeyID])); err != nil {
		return err
	}
	if _, err := r.Get(spaceKeys, d.id); err != nil {
		return err
	}
	return decodeRecord(spaceKeys, d.id, d.record, new(keyRecord))
}
