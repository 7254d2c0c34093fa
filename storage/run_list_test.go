package storage

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// runRows makes rows of runs, as many as are wanted and without what leads to
// them, from a seed.
type runRows struct {
	random *rand.Rand
	owners []Caller
	// at is the time of the newest ID.
	at   time.Time
	made uint64
}

func newRunRows(owners int) *runRows {
	r := &runRows{random: rand.New(rand.NewPCG(1, 2)), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i := range owners {
		id := func(kind, n int) uuid.UUID { return uuid.UUID{byte(kind), byte(n + 1)} }
		// Two keys an agent, two agents an organisation.
		r.owners = append(r.owners, Caller{KeyID: KeyID{id(3, i)}, AgentID: AgentID{id(2, i/2)}, OrgID: OrgID{id(1, i/4)}})
	}
	return r
}

// next returns a run that is newer than all before.
func (r *runRows) next(step time.Duration) *runRecord {
	r.at = r.at.Add(time.Duration(r.random.Int64N(int64(step)))).Truncate(time.Millisecond)
	r.made++
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(r.at.UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], r.made)
	owner := r.owners[r.random.IntN(len(r.owners))]
	rec := &runRecord{
		ID: RunID{id}, OrgID: owner.OrgID, AgentID: owner.AgentID, KeyID: owner.KeyID, Revision: 1,
		Name:      []string{"Nightly build", "build", "Änderung", "report"}[r.random.IntN(4)],
		State:     []State{StateRunning, StateFinished, StateTechnicalError, StateTerminated}[r.random.IntN(4)],
		CreatedAt: r.at.Add(time.Duration(r.random.Int64N(int64(50 * time.Second)))), Deleted: r.random.IntN(10) == 0,
	}
	if r.random.IntN(10) == 0 {
		rec.KeyID = KeyID{}
	}
	rec.UpdatedAt = rec.CreatedAt
	return rec
}

// keep writes rows with what leads to them.
func keep(t *testing.T, s *Store, recs []*runRecord) {
	t.Helper()
	for part := range slices.Chunk(recs, 20_000) {
		err := s.update(t.Context(), func(tx *tx) error {
			for _, rec := range part {
				err := errors.Join(
					put(tx, spaceRuns, rec.ID.UUID[:], *rec), put(tx, spaceAgentRuns, join(rec.AgentID.UUID[:], rec.ID.UUID[:]), present{}),
					tx.indexOwned(rec),
				)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// modelRun is a run as the model of the list knows it.
type modelRun struct {
	*runRecord
	damaged bool
}

// wanted says once more, as plainly as possible, which runs a filter wants.
func (m modelRun) wanted(f RunFilter) bool {
	created := m.CreatedAt
	if m.damaged {
		created = idTime(m.ID.UUID)
	}
	ok := (f.Org == nil || m.OrgID == *f.Org) && (f.Agent == nil || m.AgentID == *f.Agent) && (f.Key == nil || m.KeyID == *f.Key)
	ok = ok && (f.Since.IsZero() || !created.Before(f.Since)) && (f.Until.IsZero() || created.Before(f.Until))
	if m.damaged {
		return ok
	}
	text := strings.ToLower(f.Text)
	ok = ok && !m.Deleted && (f.State == "" || m.State == f.State)
	return ok && (strings.Contains(strings.ToLower(m.Name), text) || strings.HasPrefix(m.ID.String(), text))
}

func randomFilter(r *rand.Rand, all []modelRun) RunFilter {
	var f RunFilter
	some := all[r.IntN(len(all))]
	if r.IntN(3) == 0 {
		f.Org = &some.OrgID
	}
	if r.IntN(3) == 0 {
		f.Agent = &some.AgentID
	}
	if r.IntN(3) == 0 && some.KeyID != (KeyID{}) {
		f.Key = &some.KeyID
	}
	if r.IntN(3) == 0 {
		f.State = some.State
	}
	if r.IntN(3) == 0 {
		f.Text = []string{"BUILD", "änd", some.ID.String()[:12], some.ID.String(), "nothing"}[r.IntN(5)]
	}
	if r.IntN(3) == 0 {
		f.Since = some.CreatedAt
	}
	if r.IntN(3) == 0 {
		f.Until = all[r.IntN(len(all))].CreatedAt
	}
	f.Limit = []int{0, 1, 3, 50, len(all)}[r.IntN(5)]
	return f
}

// TestRunsAgainstAModel reads the pages of many lists, of which a plain slice
// says what they have to be.
func TestRunsAgainstAModel(t *testing.T) {
	const runs, filters = 600, 300
	s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := newRunRows(12)
	var all []modelRun // the newest first
	for range runs {
		all = append(all, modelRun{runRecord: rows.next(2 * time.Second)})
	}
	keep(t, s, records(all))
	for i := range all {
		if i%50 == 7 {
			all[i].damaged = true
			damage(t, s, spaceRuns, all[i].ID.UUID[:])
		}
	}
	slices.Reverse(all)
	found := 0
	for i := range filters {
		f := randomFilter(rows.random, all)
		ctx, member := t.Context(), rows.random.IntN(3) == 0
		seen := f
		if member {
			org := rows.owners[rows.random.IntN(len(rows.owners))].OrgID
			if f.Org != nil {
				org = *f.Org
			}
			ctx = WithActor(ctx, Actor{Kind: ActorUser, Role: MemberRole, Org: org})
			seen.Org = &org
		}
		var want []RunID
		for _, run := range all {
			if run.wanted(seen) {
				want = append(want, run.ID)
			}
		}
		var got []RunID
		for {
			page, next, err := s.Runs(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range page {
				got = append(got, run.ID)
			}
			if next != (RunID{}) && (f.Limit == 0 || len(page) != f.Limit || next != page[len(page)-1].ID) {
				t.Fatalf("%d: a page of %d runs, limit %d, goes on before %s", i, len(page), f.Limit, next)
			}
			if next == (RunID{}) {
				break
			}
			f.Before = next
		}
		found += len(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d: %+v, member %v:\n%s", i, f, member, diff)
		}
	}
	t.Logf("%d lists of %d runs, %d runs in them", filters, runs, found)
	if found == 0 {
		t.Error("the lists prove nothing")
	}
}

func records(all []modelRun) []*runRecord {
	recs := make([]*runRecord, len(all))
	for i, run := range all {
		recs[i] = run.runRecord
	}
	return recs
}

// TestDamagedRunIsInTheList: one row that cannot be read, or is missing, neither
// hides the others nor is passed over in silence.
func TestDamagedRunIsInTheList(t *testing.T) {
	s, caller, flipped := damagedStore(t)
	missing, sound := createRun(t, s, caller, "hello"), createRun(t, s, caller, "hello")
	damage(t, s, spaceRuns, flipped.ID.UUID[:])
	remove(t, s, spaceRuns, missing.ID.UUID[:])
	for name, f := range map[string]RunFilter{
		"the agent's": {Agent: &caller.AgentID}, "the key's": {Key: &caller.KeyID}, "the organisation's": {Org: &caller.OrgID},
		"running ones": {Agent: &caller.AgentID, State: StateRunning},
	} {
		page, _, err := s.Runs(t.Context(), f)
		if err != nil || len(page) != 3 {
			t.Fatalf("%s: %+v, %v", name, page, err)
		}
		for i, want := range []RunID{sound.ID, missing.ID, flipped.ID} {
			run := page[i]
			if run.ID != want || (run.Name == damagedName) != (i > 0) || i > 0 && (run.Reason == "" || run.CreatedAt.IsZero()) {
				t.Errorf("%s: %d is %+v", name, i, run)
			}
		}
	}
	if _, err := s.Run(t.Context(), flipped.ID); !errors.Is(err, ErrDamagedRecord) {
		t.Errorf("the run itself: got %v, want ErrDamagedRecord", err)
	}
	requests, err := s.KeyRequests(t.Context(), caller.KeyID, time.Time{}, 50)
	if err != nil || len(requests) != 3 {
		t.Errorf("KeyRequests: %+v, %v", requests, err)
	}
	stranger := WithActor(t.Context(), Actor{Kind: ActorUser, Role: MemberRole, Org: OrgID{uuid.UUID{1}}})
	if page, next, err := s.Runs(stranger, RunFilter{Agent: &caller.AgentID, Limit: 1}); err != nil || len(page) != 0 || next != (RunID{}) {
		t.Errorf("for another organisation: %+v, %s, %v", page, next, err)
	}
}

// rowCount is a store that counts the rows that are read from it.
type rowCount struct {
	kv.DB
	rows int
}

func (c *rowCount) View(ctx context.Context, fn func(kv.Reader) error) error {
	return c.DB.View(ctx, func(r kv.Reader) error { return fn(rowCountReader{r, c}) })
}

type rowCountReader struct {
	kv.Reader
	c *rowCount
}

func (r rowCountReader) Get(space string, key []byte) ([]byte, error) {
	r.c.rows++
	return r.Reader.Get(space, key)
}

func (r rowCountReader) Scan(rng kv.Range) ([]kv.Pair, error) {
	pairs, err := r.Reader.Scan(rng)
	r.c.rows += len(pairs)
	return pairs, err
}

// TestListOfManyRuns has pages of 50 among 20,000 runs, or 100,000 in a full
// test. Both hold the pages to how many rows they may read, however many there
// are, and the full one to how long that may take.
func TestListOfManyRuns(t *testing.T) {
	runs, full := 20_000, os.Getenv("AGENTRUN_TEST") == "full"
	if full {
		runs = 100_000
	}
	count := &rowCount{DB: openDB(t, filepath.Join(t.TempDir(), "agentrun.db"))}
	s, err := Open(t.Context(), count, Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	rows := newRunRows(8)
	recs := make([]*runRecord, runs)
	for i := range recs {
		recs[i] = rows.next(200 * time.Millisecond)
	}
	keep(t, s, recs)
	t.Logf("%d runs were made in %s", runs, time.Since(begun).Round(time.Millisecond))
	org, agent, deep := recs[0].OrgID, recs[0].AgentID, recs[runs/10].ID
	for _, c := range []struct {
		name  string
		f     RunFilter
		times int
		rows  int
		bound time.Duration
		full  bool // the page has its 50 runs
	}{
		{"first page", RunFilter{}, 100, 400, 20 * time.Millisecond, true},
		{"first page of an organisation", RunFilter{Org: &org}, 100, 400, 20 * time.Millisecond, true},
		{"first page of an agent", RunFilter{Agent: &agent}, 100, 400, 20 * time.Millisecond, true},
		{"deep page", RunFilter{Before: deep}, 100, 400, 20 * time.Millisecond, true},
		{"deep page of an organisation", RunFilter{Org: &org, Before: deep}, 100, 400, 20 * time.Millisecond, true},
		{"filter that fits one in four", RunFilter{State: StateRunning, Text: "build"}, 100, 2_000, 20 * time.Millisecond, true},
		{"filter that fits nothing", RunFilter{Text: "nothing"}, 10, 2*maxLooked + 500, 100 * time.Millisecond, false},
	} {
		c.f.Limit = 50
		var took []time.Duration
		for range c.times {
			begun := time.Now()
			count.rows = 0
			page, next, err := s.Runs(t.Context(), c.f)
			took = append(took, time.Since(begun))
			if err != nil || next == (RunID{}) || len(page) != map[bool]int{true: 50, false: 0}[c.full] {
				t.Fatalf("%s: %d runs, next %s, %v", c.name, len(page), next, err)
			}
		}
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		t.Logf("%s: %d rows, p50 %s, p99 %s", c.name, count.rows, p50.Round(10*time.Microsecond), p99.Round(10*time.Microsecond))
		if count.rows > c.rows || count.rows == 0 || full && p99 > c.bound {
			t.Errorf("%s: %d rows, p99 %s, want %d and %s at most", c.name, count.rows, p99, c.rows, c.bound)
		}
	}
	boundOfLooks(t, s, recs)
}

// boundOfLooks goes through a list in which only the oldest run fits.
func boundOfLooks(t *testing.T, s *Store, recs []*runRecord) {
	t.Helper()
	oldest := recs[slices.IndexFunc(recs, func(r *runRecord) bool { return !r.Deleted })]
	f := RunFilter{Text: oldest.ID.String(), Limit: 50}
	pages, found := 0, 0
	for {
		page, next, err := s.Runs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		found += len(page)
		if next == (RunID{}) {
			break
		}
		if want := recs[len(recs)-pages*maxLooked].ID; next != want {
			t.Fatalf("page %d goes on before %s, want %s", pages, next, want)
		}
		f.Before = next
	}
	if want := len(recs)/maxLooked + 1; found != 1 || pages != want {
		t.Errorf("found %d times in %d pages, want once in %d", found, pages, want)
	}
}
