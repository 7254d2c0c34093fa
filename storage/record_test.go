package storage

import (
	"testing"

	"github.com/go-faster/errors"
)

func TestEveryFlippedBitOfARecordIsFound(t *testing.T) {
	key := []byte("key")
	raw, err := encodeRecord(spaceMessages, key, messageRecord{Role: RoleInput, Text: "how many words?", Turn: 1})
	if err != nil {
		t.Fatal(err)
	}
	var intact messageRecord
	if err := decodeRecord(spaceMessages, key, raw, &intact); err != nil {
		t.Fatal(err)
	}
	flips, found := 0, 0
	for i := range raw {
		for bit := range 8 {
			flipped := append([]byte{}, raw...)
			flipped[i] ^= 1 << bit
			var rec messageRecord
			flips++
			if err := decodeRecord(spaceMessages, key, flipped, &rec); errors.Is(err, ErrDamagedRecord) {
				found++
			} else {
				t.Errorf("byte %d bit %d: got %v and %+v", i, bit, err, rec)
			}
		}
	}
	t.Logf("%d bits flipped, %d found", flips, found)
}

func TestARecordIsBoundToItsPlace(t *testing.T) {
	raw, err := encodeRecord(spaceMessages, []byte("key"), messageRecord{Text: "text"})
	if err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]struct {
		space string
		key   string
		raw   []byte
	}{
		"another key":   {spaceMessages, "kez", raw},
		"another space": {spaceEvents, "key", raw},
		"cut short":     {spaceMessages, "key", raw[:len(raw)-1]},
		"no record":     {spaceMessages, "key", []byte{1, 2, 3}},
		"empty":         {spaceMessages, "key", []byte{}},
	} {
		var rec messageRecord
		if err := decodeRecord(place.space, []byte(place.key), place.raw, &rec); !errors.Is(err, ErrDamagedRecord) {
			t.Errorf("%s: got %v, want ErrDamagedRecord", name, err)
		}
	}
}
