package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// insideTx is a store as a transaction sees it, which is never committed.
type insideTx struct {
	kv.DB
	tx kv.Tx
}

func (i insideTx) View(_ context.Context, fn func(kv.Reader) error) error { return fn(i.tx) }

// injury is one harm to the audit log and how it is undone.
type injury struct {
	space  string
	key    []byte
	before []byte
}

// wounded injures the log within a transaction, looks, and heals it.
type wounded struct {
	t  *testing.T
	tx kv.Tx
	s  *Store
	// sound is the log as it was, by the number of its entries.
	sound []Audit
	// kept are its rows as they were.
	kept map[string][]kv.Pair

	open                       []injury
	injected, detected, misled int
}

func (w *wounded) write(space string, key, value []byte) {
	w.t.Helper()
	before, err := w.tx.Get(space, key)
	if err != nil {
		w.t.Fatal(err)
	}
	if before != nil {
		before = append([]byte{}, before...)
	}
	w.open = append(w.open, injury{space, append([]byte{}, key...), before})
	w.put(space, key, value)
}

func (w *wounded) put(space string, key, value []byte) {
	w.t.Helper()
	err := w.tx.Delete(space, key)
	if value != nil {
		err = w.tx.Put(space, key, value)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// record writes rec as a hand that knows the format of records.
func (w *wounded) record(space string, key []byte, rec any) {
	w.t.Helper()
	raw, err := encodeRecord(space, key, rec)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(space, key, raw)
}

// look counts an injury, and whether it is found; then it heals the log. forged
// is true when the records by themselves are right, so that reading them cannot
// find it.
func (w *wounded) look(forged bool, format string, args ...any) {
	w.t.Helper()
	w.injected++
	what := fmt.Sprintf(format, args...)
	if n, err := w.s.CheckAudit(w.t.Context()); errors.Is(err, ErrDamagedRecord) {
		w.detected++
	} else {
		w.t.Errorf("%s: CheckAudit says %d entries, %v", what, n, err)
	}
	if !forged {
		w.read(what)
	}
	for i := len(w.open) - 1; i >= 0; i-- {
		w.put(w.open[i].space, w.open[i].key, w.open[i].before)
	}
	w.open = w.open[:0]
}

// read reads the log: it is an error, or what it was.
func (w *wounded) read(what string) {
	w.t.Helper()
	log, _, err := w.s.AuditLog(w.t.Context(), AuditFilter{Limit: 100})
	if errors.Is(err, ErrDamagedRecord) {
		return
	}
	slices.Reverse(log)
	if diff := cmp.Diff(w.sound, log); err != nil || diff != "" {
		w.misled++
		w.t.Errorf("%s: %v, the log reads\n%s", what, err, diff)
	}
}

// injure harms a copy of the log in every way, one after the other.
func (w *wounded) injure() {
	w.flipBytes()
	w.moveKeys()
	w.swapAndTakeOut()
	w.forge()
}

func (w *wounded) flipBytes() {
	for _, space := range []string{spaceAudit, spaceOrgAudit, spaceMeta} {
		for _, p := range w.kept[space] {
			for at := range p.Value {
				flipped := append([]byte{}, p.Value...)
				flipped[at] ^= 1 << (at % 8)
				w.write(space, p.Key, flipped)
				w.look(false, "%s %x: byte %d flipped", space, p.Key, at)
			}
		}
	}
}

// moveKeys flips each bit of the ends of keys.
func (w *wounded) moveKeys() {
	for _, space := range []string{spaceAudit, spaceOrgAudit, spaceMeta} {
		for _, p := range w.kept[space] {
			for bit := range 16 {
				key := append([]byte{}, p.Key...)
				key[len(key)-1-bit/8] ^= 1 << (bit % 8)
				w.write(space, p.Key, nil)
				w.write(space, key, p.Value)
				w.look(false, "%s %x: moved to %x", space, p.Key, key)
			}
		}
	}
}

func (w *wounded) swapAndTakeOut() {
	log := w.kept[spaceAudit]
	for i := range log {
		w.write(spaceAudit, log[i].Key, nil)
		w.look(false, "entry %d taken out", i+1)
		for k := range i {
			w.write(spaceAudit, log[i].Key, log[k].Value)
			w.write(spaceAudit, log[k].Key, log[i].Value)
			w.look(false, "entries %d and %d swapped", k+1, i+1)
		}
		for _, p := range log[i:] {
			w.write(spaceAudit, p.Key, nil)
		}
		w.look(false, "cut off from entry %d on", i+1)
	}
	for _, p := range w.kept[spaceOrgAudit] {
		w.write(spaceOrgAudit, p.Key, nil)
		w.look(true, "%s %x taken out", spaceOrgAudit, p.Key)
	}
	w.write(spaceMeta, keyAudit, nil)
	w.look(false, "the head taken out")
}

// forge writes records that are right by themselves.
func (w *wounded) forge() {
	entries := make([]auditRecord, len(w.kept[spaceAudit]))
	for i, p := range w.kept[spaceAudit] {
		if err := decodeRecord(spaceAudit, p.Key, p.Value, &entries[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	for i, rec := range entries {
		for name, change := range map[string]func(*auditRecord){
			"number": func(r *auditRecord) { r.Seq++ }, "time": func(r *auditRecord) { r.At = r.At.Add(time.Nanosecond) },
			"kind": func(r *auditRecord) { r.Kind = ActorOperator }, "actor": func(r *auditRecord) { r.ActorID[3]++ },
			"name": func(r *auditRecord) { r.Name += "x" }, "from": func(r *auditRecord) { r.From = "192.0.2.99" },
			"action": func(r *auditRecord) { r.Action = "key.delete" }, "organisation": func(r *auditRecord) { r.Org.UUID[3]++ },
			"subject": func(r *auditRecord) { r.Subject.Name += "x" }, "detail": func(r *auditRecord) { r.Detail += "x" },
			"sum": func(r *auditRecord) { r.Before = append([]byte{1}, r.Before...) },
		} {
			changed := rec
			change(&changed)
			w.record(spaceAudit, auditKey(rec.Seq), changed)
			w.look(true, "entry %d: another %s", rec.Seq, name)
		}
		for _, other := range entries[:i] {
			one, two := rec, other
			one.Seq, two.Seq = two.Seq, one.Seq
			one.Before, two.Before = two.Before, one.Before
			w.record(spaceAudit, auditKey(one.Seq), one)
			w.record(spaceAudit, auditKey(two.Seq), two)
			w.look(true, "entries %d and %d swapped and made to fit", one.Seq, two.Seq)
		}
	}
	last, head := entries[len(entries)-1], auditHead{}
	if err := decodeRecord(spaceMeta, keyAudit, w.kept[spaceMeta][0].Value, &head); err != nil {
		w.t.Fatal(err)
	}
	w.record(spaceMeta, keyAudit, auditHead{Seq: head.Seq - 1, Sum: head.Sum})
	w.look(true, "the head names another number")
	w.record(spaceMeta, keyAudit, auditHead{Seq: head.Seq, Sum: append([]byte{}, head.Sum[1:]...)})
	w.look(true, "the head names another sum")
	w.record(spaceAudit, auditKey(last.Seq+1), auditRecord{Seq: last.Seq + 1, At: last.At, Before: head.Sum})
	w.look(true, "an entry behind the head")
	// The bytes are the same entry, written in another way.
	w.write(spaceAudit, auditKey(last.Seq), respaced(w.t, w.kept[spaceAudit][last.Seq-1]))
	w.look(true, "the last entry with a blank more")
	w.record(spaceOrgAudit, join(nobodysOrg[:], auditKey(last.Seq)), present{})
	w.look(true, "an entry among those of an organisation that is none")
}

// nobodysOrg is an organisation of which nothing is in the log.
var nobodysOrg = uuid.UUID{1}

// respaced is the record at p with a blank behind its JSON and a right checksum.
func respaced(t *testing.T, p kv.Pair) []byte {
	t.Helper()
	raw := append(append([]byte{}, p.Value...), ' ')
	binary.BigEndian.PutUint32(raw[1:recordHeader], checksum(spaceAudit, p.Key, raw))
	var rec auditRecord
	if err := decodeRecord(spaceAudit, p.Key, raw, &rec); err != nil {
		t.Fatal(err)
	}
	return raw
}

// writeLog makes a log of 20 entries, some of organisations, one with bytes that
// are no text.
func writeLog(t *testing.T, s *Store) []Audit {
	t.Helper()
	applyEcho(t, s)
	for i := range 19 {
		subject := Subject{Kind: "agent", Name: fmt.Sprintf("agent %d", i)}
		if i == 7 {
			subject.Name += "\xff\xfe"
		}
		org, err := s.FindOrg(t.Context(), DefaultOrg)
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			org.ID = OrgID{}
		}
		if err := s.update(t.Context(), func(tx *tx) error { return tx.audit("agent.apply", org.ID, subject, "detail") }); err != nil {
			t.Fatal(err)
		}
	}
	log, _, err := s.AuditLog(t.Context(), AuditFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	sound := make([]Audit, len(log))
	for _, entry := range log {
		sound[entry.Seq-1] = entry
	}
	return sound
}

// TestDamageToTheAuditLogIsDetected injures every byte of the log, and its order.
func TestDamageToTheAuditLogIsDetected(t *testing.T) {
	s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	sound := writeLog(t, s)
	if n, err := s.CheckAudit(t.Context()); err != nil || n != 20 {
		t.Fatalf("the untouched log: %d entries, %v", n, err)
	}
	undo := errors.New("undo")
	var w *wounded
	err = s.db.Update(t.Context(), func(raw kv.Tx) error {
		w = &wounded{t: t, tx: raw, s: &Store{db: insideTx{s.db, raw}, now: s.now}, sound: sound, kept: map[string][]kv.Pair{}}
		for _, rng := range []kv.Range{{Space: spaceAudit}, {Space: spaceOrgAudit}, kv.Prefix(spaceMeta, keyAudit)} {
			pairs, err := raw.Scan(rng)
			if err != nil {
				return err
			}
			for _, p := range pairs {
				w.kept[rng.Space] = append(w.kept[rng.Space], kv.Pair{Key: join(p.Key), Value: join(p.Value)})
			}
		}
		w.injure()
		if n, err := w.s.CheckAudit(t.Context()); err != nil || n != 20 {
			t.Errorf("the log that was healed: %d entries, %v", n, err)
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	t.Logf("%d injected, %d detected; %d readers misled", w.injected, w.detected, w.misled)
	if w.injected == 0 || w.injected != w.detected || w.misled != 0 {
		t.Error("the log can be changed without a trace")
	}
	if n, err := s.CheckAudit(t.Context()); err != nil || n != 20 {
		t.Errorf("the untouched log, afterwards: %d entries, %v", n, err)
	}
}

// TestDamageToTheAuditLogOnDisk does the same with a few injuries that are
// committed.
func TestDamageToTheAuditLogOnDisk(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, s *Store){
		"an entry flipped":   func(t *testing.T, s *Store) { t.Helper(); damage(t, s, spaceAudit, auditKey(5)) },
		"an entry taken out": func(t *testing.T, s *Store) { t.Helper(); remove(t, s, spaceAudit, auditKey(5)) },
		"the last taken out": func(t *testing.T, s *Store) { t.Helper(); remove(t, s, spaceAudit, auditKey(20)) },
		"the head flipped":   func(t *testing.T, s *Store) { t.Helper(); damage(t, s, spaceMeta, keyAudit) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{})
			if err != nil {
				t.Fatal(err)
			}
			writeLog(t, s)
			harm(t, s)
			if n, err := s.CheckAudit(t.Context()); !errors.Is(err, ErrDamagedRecord) {
				t.Errorf("CheckAudit: %d entries, %v", n, err)
			}
			if page, _, err := s.AuditLog(t.Context(), AuditFilter{Limit: 100}); !errors.Is(err, ErrDamagedRecord) {
				t.Errorf("AuditLog: %+v, %v", page, err)
			}
		})
	}
}
