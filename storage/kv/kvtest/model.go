package kvtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"pgregory.net/rapid"

	"agentrun/storage/kv"
)

// model is what a store should hold: the value at each key of each space.
type model map[string]map[string]string

// step is one thing that a function of the model test does: a write, or a scan
// and a Get that have to agree with the model.
type step struct {
	kind  string // put, delete or read
	key   string
	value string
	rng   kv.Range
}

// testModel compares the store with a map through random updates, of which some
// fail, and random reads in the middle of them.
func testModel(t *testing.T, db kv.DB) {
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		// One store serves all rounds: opening one can cost more than the rest.
		round++
		m := model{}
		for range rapid.IntRange(1, 4).Draw(rt, "updates") {
			steps := rapid.SliceOfN(genStep(round), 1, 25).Draw(rt, "steps")
			fails := rapid.Float64Range(0, 1).Draw(rt, "fails") < 0.25
			changed := m.clone()
			err := db.Update(t.Context(), func(tx kv.Tx) error {
				changed = m.clone()
				for _, s := range steps {
					if err := s.do(tx, changed); err != nil {
						return err
					}
				}
				if fails {
					return errRefused
				}
				return nil
			})
			switch {
			case fails && err == errRefused:
			case !fails && err == nil:
				m = changed
			default:
				rt.Fatalf("update returned %v, failing on purpose: %v", err, fails)
			}
		}
		reads := rapid.SliceOfN(genRange(round), 1, 8).Draw(rt, "reads")
		err := db.View(t.Context(), func(r kv.Reader) error {
			for _, rng := range reads {
				if err := m.wantScan(r, rng); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			rt.Fatalf("view: %v", err)
		}
	})
}

func (m model) clone() model {
	clone := make(model, len(m))
	for space, pairs := range m {
		clone[space] = maps.Clone(pairs)
	}
	return clone
}

func (m model) wantScan(r kv.Reader, rng kv.Range) error {
	want := []string{}
	for _, key := range slices.Sorted(maps.Keys(m[rng.Space])) {
		if key >= string(rng.From) && (rng.To == nil || key < string(rng.To)) {
			want = append(want, key+"="+m[rng.Space][key])
		}
	}
	if rng.Reverse {
		slices.Reverse(want)
	}
	if rng.Limit > 0 && len(want) > rng.Limit {
		want = want[:rng.Limit]
	}
	return wantScan(r, rng, want...)
}

func (s step) do(tx kv.Tx, m model) error {
	space := s.rng.Space
	switch s.kind {
	case "put":
		if m[space] == nil {
			m[space] = map[string]string{}
		}
		m[space][s.key] = s.value
		return put(tx, space, s.key, s.value)
	case "delete":
		delete(m[space], s.key)
		return tx.Delete(space, []byte(s.key))
	default:
		want, found := m[space][s.key]
		if !found {
			want = "(absent)"
		}
		return errors.Join(wantGet(tx, space, s.key, want), m.wantScan(tx, s.rng))
	}
}

// genKey draws from few keys, so that steps meet, some of them long, so that
// they fill pages.
func genKey() *rapid.Generator[string] {
	return rapid.Custom(func(rt *rapid.T) string {
		key := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00z")), 1, 3, -1).Draw(rt, "key")
		if rapid.IntRange(0, 9).Draw(rt, "long") == 0 {
			key += strings.Repeat("k", 600)
		}
		return key
	})
}

func genRange(round int) *rapid.Generator[kv.Range] {
	return rapid.Custom(func(rt *rapid.T) kv.Range {
		bound := rapid.Custom(func(rt *rapid.T) []byte {
			if rapid.Bool().Draw(rt, "unbounded") {
				return nil
			}
			return []byte(genKey().Draw(rt, "bound"))
		})
		return kv.Range{
			Space:   fmt.Sprintf("model-%d-%d", round, rapid.IntRange(0, 1).Draw(rt, "space")),
			From:    bound.Draw(rt, "from"),
			To:      bound.Draw(rt, "to"),
			Reverse: rapid.Bool().Draw(rt, "reverse"),
			Limit:   rapid.IntRange(0, 4).Draw(rt, "limit"),
		}
	})
}

func genStep(round int) *rapid.Generator[step] {
	return rapid.Custom(func(rt *rapid.T) step {
		s := step{
			kind: rapid.SampledFrom([]string{"put", "put", "delete", "read"}).Draw(rt, "kind"),
			key:  genKey().Draw(rt, "key"),
			rng:  genRange(round).Draw(rt, "range"),
		}
		if s.kind == "put" {
			length := rapid.SampledFrom([]int{0, 1, 10, 3000}).Draw(rt, "length")
			s.value = strings.Repeat("v", length)
		}
		return s
	})
}
