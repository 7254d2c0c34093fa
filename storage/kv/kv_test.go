package kv

import (
	"bytes"
	"testing"
)

func TestAfter(t *testing.T) {
	for _, c := range []struct{ prefix, want []byte }{
		{nil, nil},
		{[]byte{}, nil},
		{[]byte("a"), []byte("b")},
		{[]byte{'a', 0}, []byte{'a', 1}},
		{[]byte{'a', 0xff}, []byte{'b'}},
		{[]byte{'a', 0xff, 0xff}, []byte{'b'}},
		{[]byte{0xff, 0xff}, nil},
		{[]byte{0xfe, 0xff}, []byte{0xff}},
	} {
		before := bytes.Clone(c.prefix)
		got := After(c.prefix)
		if !bytes.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("After(%x) = %x, want %x", c.prefix, got, c.want)
		}
		if !bytes.Equal(before, c.prefix) {
			t.Errorf("After(%x) changed its argument to %x", before, c.prefix)
		}
	}
}

func TestPrefixHoldsJustItsKeys(t *testing.T) {
	r := Prefix("space", []byte{'a', 0xff})
	for key, in := range map[string]bool{
		"a": false, "a\xfe\xff": false, "a\xff": true, "a\xff\x00": true, "a\xff\xff\xff": true, "b": false,
	} {
		k := []byte(key)
		got := bytes.Compare(k, r.From) >= 0 && (r.To == nil || bytes.Compare(k, r.To) < 0)
		if got != in {
			t.Errorf("key %x: %v, want %v", key, got, in)
		}
	}
}
