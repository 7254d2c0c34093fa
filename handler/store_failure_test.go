package handler

import (
	"bytes"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/storage"
	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/storagetest"
)

// harm changes one byte of every record of a space, in the closed file, behind
// storage's back.
func harm(t *testing.T, path, space string) {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	harmed := 0
	err = db.Update(t.Context(), func(tx kv.Tx) error {
		pairs, err := tx.Scan(kv.Range{Space: space})
		if err != nil {
			return err
		}
		harmed = len(pairs)
		for _, p := range pairs {
			value := bytes.Clone(p.Value)
			value[len(value)-2] ^= 1
			if err := tx.Put(space, bytes.Clone(p.Key), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || harmed == 0 {
		t.Fatalf("%d records of %s harmed, %v", harmed, space, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// finishedRun leaves a finished run in a closed store; reopen serves it again.
func finishedRun(t *testing.T) (acc *account, run uuid.UUID) {
	t.Helper()
	a := newAPI(t)
	acc = a.account(storage.DefaultOrg, storagetest.EchoFile)
	run = acc.mustCreate(acc.request("hello"))
	turn, err := a.store.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store.FinishTurn(t.Context(), turn.Claim, "bye"); err != nil {
		t.Fatal(err)
	}
	if got := acc.get(run.String()); got.status != http.StatusOK {
		t.Fatalf("before: %d %s", got.status, got.body)
	}
	if err := a.store.Close(); err != nil {
		t.Fatal(err)
	}
	return acc, run
}

func (acc *account) reopen() {
	acc.t.Helper()
	again := newAPI(acc.t, func(c *Config) {
		c.Store = storagetest.OpenFile(acc.t, acc.dbPath, storage.Options{})
	})
	acc.url = again.url
	acc.client = acc.api.client(acc.secret)
}

func TestUnreadableRecords(t *testing.T) {
	for _, c := range []struct {
		space string
		get   int
		post  int
	}{
		{"runs", 502, 201},
		{"messages", 502, 201},
		{"keys", 502, 500},
		{"key_hashes", 502, 500},
		{"agents", 200, 500},
		{"agent_revisions", 200, 500},
	} {
		t.Run(c.space, func(t *testing.T) {
			acc, run := finishedRun(t)
			harm(t, acc.dbPath, c.space)
			acc.reopen()
			got := acc.get(run.String())
			if c.get == 502 {
				acc.wantDetail("GET", got, 502, "event history lookup failed")
				res, err := acc.client.GetAgent(t.Context(), gen.GetAgentParams{AgentID: run})
				if err != nil || !is[*gen.GetAgentBadGateway](res) {
					t.Errorf("through the client: %+v, %v", res, err)
				}
			} else if got.status != c.get {
				t.Errorf("GET: %d %s, want %d", got.status, got.body, c.get)
			}
			created := acc.post(`{"name":"n","template_id":"` + acc.agent.ID.String() + `","files":[{"filename":"a","content_base64":"QQ=="}]}`)
			if c.post == 500 {
				acc.wantDetail("POST", created, 500, "internal error")
			} else if created.status != c.post {
				t.Errorf("POST: %d %s, want %d", created.status, created.body, c.post)
			}
		})
	}
}

func TestOnlyTheDamagedRunIs502(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	damaged := acc.mustCreate(acc.request("one"))
	if err := a.store.Close(); err != nil {
		t.Fatal(err)
	}
	harm(t, acc.dbPath, "runs")
	acc.reopen()
	healthy := acc.post(`{"name":"n","template_id":"` + acc.agent.ID.String() + `"}`)
	if healthy.status != http.StatusCreated {
		t.Fatalf("POST: %d %s", healthy.status, healthy.body)
	}
	acc.wantDetail("the damaged run", acc.get(damaged.String()), 502, "event history lookup failed")
	if got := acc.get(healthy.body[len(`{"agent_id":"`) : len(`{"agent_id":"`)+36]); got.status != http.StatusOK {
		t.Errorf("another run: %d %s", got.status, got.body)
	}
}

func TestClosedStore(t *testing.T) {
	acc, run := finishedRun(t)
	acc.wantDetail("GET", acc.get(run.String()), 503, "event history is temporarily unavailable")
	acc.wantDetail("POST", acc.post(`{"name":"n","template_id":"`+acc.agent.ID.String()+`"}`), 500, "internal error")
	if res, err := acc.client.GetAgent(t.Context(), gen.GetAgentParams{AgentID: run}); err != nil || !is[*gen.GetAgentServiceUnavailable](res) {
		t.Errorf("through the client: %+v, %v", res, err)
	}
}

// TestNoReadTransactionInTime makes the store unable to give a read
// transaction: the writer has to map a larger file, which waits for a reader
// that does not end, and new readers wait behind the writer.
func TestNoReadTransactionInTime(t *testing.T) {
	path := t.TempDir() + "/agentrun.db"
	db, err := bolt.Open(path, bolt.Options{InitialMmapSize: 1 << 15, ReadWait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(t.Context(), db, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a := newAPI(t, func(c *Config) { c.Store = store })
	a.store = store
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	run := acc.mustCreate(acc.request("hello"))

	reading, release := make(chan struct{}), make(chan struct{})
	readerDone, writerDone := make(chan error, 1), make(chan error, 1)
	go func() {
		readerDone <- db.View(t.Context(), func(kv.Reader) error {
			close(reading)
			<-release
			return nil
		})
	}()
	<-reading
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		writerDone <- db.Update(t.Context(), func(tx kv.Tx) error {
			return tx.Put("ballast", []byte("key"), make([]byte, before.Size()+1<<20))
		})
	}()
	deadline := time.After(20 * time.Second)
	for {
		got := acc.get(run.String())
		if got.status == http.StatusServiceUnavailable {
			a.wantDetail("GET", got, 503, "event history is temporarily unavailable")
			break
		}
		select {
		case <-deadline:
			t.Fatalf("the store never became unavailable: %d %s", got.status, got.body)
		default: // The writer has not come to the mapping yet.
		}
	}
	close(release)
	if err := <-readerDone; err != nil {
		t.Fatal(err)
	}
	if err := <-writerDone; err != nil {
		t.Fatal(err)
	}
	if got := acc.get(run.String()); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}
