package storage

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/kv"
)

func TestCheckReadsEverySpace(t *testing.T) {
	drawn, read := drawnSpaces(t), slices.Clone(spaces)
	slices.Sort(drawn)
	slices.Sort(read)
	if diff := cmp.Diff(drawn, read); diff != "" {
		t.Errorf("drawn (-) and checked (+) spaces differ:\n%s", diff)
	}
}

// TestCheckFindsDamage flips a bit in the first record of each space, and mends
// it again.
func TestCheckFindsDamage(t *testing.T) {
	s, caller, _ := damagedStore(t)
	fillPeople(t, s, caller)
	for range 2 * scanBatch {
		s.NoteRefused(caller.KeyID, 409)
		createIdle(t, s, caller)
	}
	check := func() CheckReport {
		t.Helper()
		report, err := OpenAsIs(s.db).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	whole := check()
	if len(whole.Damaged) > 0 || whole.Records < 2*scanBatch || whole.AuditEntries == 0 {
		t.Fatalf("whole: %+v", whole)
	}
	flipped := 0
	for _, space := range spaces {
		var pairs []kv.Pair
		err := s.db.View(t.Context(), func(r kv.Reader) error {
			found, err := r.Scan(kv.Range{Space: space, Limit: 1, Reverse: true})
			for _, p := range found {
				pairs = append(pairs, kv.Pair{Key: slices.Clone(p.Key), Value: slices.Clone(p.Value)})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs {
			flipped++
			damage(t, s, space, p.Key)
			report := check()
			if report.Records != whole.Records || !slices.ContainsFunc(report.Damaged, func(line string) bool { return strings.HasPrefix(line, space+" ") }) {
				t.Errorf("%s: %+v", space, report)
			}
			if err := s.db.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(space, p.Key, p.Value) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if flipped < 20 {
		t.Errorf("only %d spaces have a record", flipped)
	}
	remove(t, s, spaceAudit, auditKey(1))
	if report := check(); len(report.Damaged) != 1 || !strings.Contains(report.Damaged[0], "audit 1: the chain is broken") {
		t.Errorf("without the first entry of the audit log: %+v", report)
	}
}
