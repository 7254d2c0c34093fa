package secret

import "encoding/binary"

const (
	// minForm is the least length of what is searched for.
	minForm = 4
	// maxWindow bounds a filter's window. A longer one gains little, and fills
	// the table of blocks.
	maxWindow = 16
)

// filter finds the places of a text where a form may begin. It sees to it that
// text without secrets hardly ever meets the automaton. In the manner of Wu and
// Manber it looks at the last four bytes of a window as long as the shortest
// form: when no form has them near its beginning, none begins in the window,
// and the next one is a step of almost its length away.
type filter struct {
	window int
	heads  table // the first four bytes of the forms
	blocks table // all four bytes in a row of their first window
}

func (f *filter) add(form string) {
	f.heads.add(four(form, 0))
	for i := range f.window - minForm + 1 {
		f.blocks.add(four(form, i))
	}
}

// next returns the first place from i on where a form may begin. The last few
// bytes, which are too few for a decision, always may.
func (f *filter) next(p []byte, i int) int {
	last := f.window - minForm // where in the window the last block is
	for ; i+f.window <= len(p); i += last + 1 {
		if !f.blocks.has(binary.LittleEndian.Uint32(p[i+last:])) {
			continue
		}
		for at := i; at <= i+last; at++ {
			if f.heads.has(binary.LittleEndian.Uint32(p[at:])) {
				return at
			}
		}
	}
	for ; i+minForm <= len(p); i++ {
		if f.heads.has(binary.LittleEndian.Uint32(p[i:])) {
			break
		}
	}
	return i
}

// table is a Bloom filter for four bytes.
type table [1 << 10]uint64

func (t *table) add(bytes uint32) {
	word, bit := place(bytes)
	t[word] |= 1 << bit
}

func (t *table) has(bytes uint32) bool {
	word, bit := place(bytes)
	return t[word]>>bit&1 != 0
}

func place(bytes uint32) (word, bit uint32) {
	hash := bytes * 0x9e3779b1 >> 16
	return hash >> 6, hash & 63
}

func four(form string, i int) uint32 {
	return binary.LittleEndian.Uint32([]byte(form[i : i+minForm]))
}
