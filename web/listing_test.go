package web_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/web"
	"agentrun/web/gen"
)

func TestRevisions(t *testing.T) {
	c, _, _ := newClient(t)
	files := []string{storagetest.EchoFile, storagetest.EchoFile + "# two\n", storagetest.EchoFile + "# three\n"}
	for _, file := range files {
		must[*gen.AppliedAgent](t)(c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: file}))
	}
	revisions := must[[]gen.Revision](t)(c.ListRevisions(t.Context(), gen.ListRevisionsParams{Agent: "echo"}))
	if len(revisions) != len(files) || revisions[0].Number != 3 || revisions[2].Number != 1 || revisions[0].CreatedBy.Value != "operator" {
		t.Errorf("revisions: %+v", revisions)
	}
	for i, file := range files {
		got := must[*gen.RevisionFile](t)(c.GetRevision(t.Context(), gen.GetRevisionParams{Agent: "echo", Revision: i + 1}))
		if got.File != file || got.Revision.Number != i+1 {
			t.Errorf("revision %d: %+v", i+1, got)
		}
	}
	if p := problem(t, second(c.GetRevision(t.Context(), gen.GetRevisionParams{Agent: "echo", Revision: 4}))); p.StatusCode != http.StatusNotFound {
		t.Errorf("the next one: %+v", p)
	}
}

func TestRotateKey(t *testing.T) {
	c, store, _ := newClient(t)
	must[*gen.AppliedAgent](t)(c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: storagetest.EchoFile}))
	for overlap, accepted := range map[int]bool{0: false, 3600: true} {
		old := must[*gen.CreatedKey](t)(c.CreateKey(t.Context(), &gen.CreateKeyReq{Name: gen.NewOptName("ci")}, gen.CreateKeyParams{Agent: "echo"}))
		next := must[*gen.CreatedKey](t)(c.RotateKey(t.Context(), &gen.RotateKeyReq{Overlap: gen.NewOptInt(overlap)}, gen.RotateKeyParams{Key: old.ID}))
		if next.ID == old.ID || next.Name != "ci" || next.AgentID != old.AgentID || next.ExpiresAt.Set {
			t.Errorf("the next: %+v", next)
		}
		must[storage.Caller](t)(store.Authenticate(t.Context(), next.Key))
		if _, err := store.Authenticate(t.Context(), old.Key); (err == nil) != accepted {
			t.Errorf("the old one after an overlap of %d: %v", overlap, err)
		}
	}
}

func TestKeyRequests(t *testing.T) {
	c, store, _ := newClient(t)
	caller := storagetest.MustCaller(t, store, storagetest.MustApply(t, store, storage.DefaultOrg, storagetest.EchoFile))
	var want []uuid.UUID
	for range 3 {
		want = append([]uuid.UUID{storagetest.MustRun(t, store, caller).ID.UUID}, want...)
	}
	store.NoteRefused(caller.KeyID, http.StatusConflict)
	list := func(params gen.ListKeyRequestsParams) []gen.KeyRequest {
		t.Helper()
		params.Key = caller.KeyID.UUID
		return must[*gen.KeyRequestPage](t)(c.ListKeyRequests(t.Context(), params)).Requests
	}
	all := list(gen.ListKeyRequestsParams{})
	if len(all) != 4 || all[0].Status != http.StatusConflict || all[0].Run.Set {
		t.Fatalf("requests: %+v", all)
	}
	for i, r := range all[1:] {
		if r.Status != http.StatusCreated || r.Run.Value != want[i] || r.Name.Value != "test" {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if got := list(gen.ListKeyRequestsParams{Limit: gen.NewOptInt(2)}); len(got) != 2 || got[1] != all[1] {
		t.Errorf("two: %+v", got)
	}
	if got := list(gen.ListKeyRequestsParams{Before: gen.NewOptString(all[3].At.Add(-time.Hour).Format(time.RFC3339))}); len(got) != 0 {
		t.Errorf("of earlier: %+v", got)
	}
}

func TestRunFiltersAndPages(t *testing.T) {
	c, store, _ := newClient(t)
	must[*gen.Org](t)(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: "acme"}))
	ours := storagetest.MustCaller(t, store, storagetest.MustApply(t, store, storage.DefaultOrg, storagetest.EchoFile))
	theirs := storagetest.MustCaller(t, store, storagetest.MustApply(t, store, "acme", storagetest.EchoFile))
	var all []uuid.UUID // newest first
	for i := range 7 {
		caller := ours
		if i%2 == 1 {
			caller = theirs
		}
		all = append([]uuid.UUID{storagetest.MustRun(t, store, caller).ID.UUID}, all...)
	}
	list := func(params gen.ListRunsParams) (ids []uuid.UUID) {
		t.Helper()
		for {
			page := must[*gen.RunPage](t)(c.ListRuns(t.Context(), params))
			for _, r := range page.Runs {
				ids = append(ids, r.ID)
			}
			if !page.Next.Set {
				return ids
			}
			params.Before = page.Next
		}
	}
	for _, length := range []int{1, 2, 3, 7, 100} {
		if diff := cmp.Diff(all, list(gen.ListRunsParams{Limit: gen.NewOptInt(length)})); diff != "" {
			t.Errorf("pages of %d:\n%s", length, diff)
		}
	}
	of := func(ids ...int) (runs []uuid.UUID) {
		for _, i := range ids {
			runs = append(runs, all[i])
		}
		return runs
	}
	now := time.Now()
	for what, c := range map[string]struct {
		params gen.ListRunsParams
		want   []uuid.UUID
	}{
		"organisation":      {gen.ListRunsParams{Org: gen.NewOptString("acme")}, of(1, 3, 5)},
		"agent":             {gen.ListRunsParams{Agent: gen.NewOptString(ours.AgentID.String())}, of(0, 2, 4, 6)},
		"key":               {gen.ListRunsParams{Key: gen.NewOptUUID(theirs.KeyID.UUID)}, of(1, 3, 5)},
		"key and not agent": {gen.ListRunsParams{Key: gen.NewOptUUID(theirs.KeyID.UUID), Agent: gen.NewOptString(ours.AgentID.String())}, nil},
		"name":              {gen.ListRunsParams{Text: gen.NewOptString("TES")}, all},
		"ID":                {gen.ListRunsParams{Text: gen.NewOptString(all[2].String())}, of(2)},
		"no name":           {gen.ListRunsParams{Text: gen.NewOptString("nothing")}, nil},
		"since":             {gen.ListRunsParams{Since: gen.NewOptDateTime(now.Add(-time.Hour))}, all},
		"since later":       {gen.ListRunsParams{Since: gen.NewOptDateTime(now.Add(time.Hour))}, nil},
		"until":             {gen.ListRunsParams{Until: gen.NewOptDateTime(now.Add(time.Hour))}, all},
		"until before":      {gen.ListRunsParams{Until: gen.NewOptDateTime(now.Add(-time.Hour))}, nil},
		"before":            {gen.ListRunsParams{Before: gen.NewOptUUID(all[4])}, of(5, 6)},
	} {
		c.params.Limit = gen.NewOptInt(2)
		if diff := cmp.Diff(c.want, list(c.params)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func TestArchive(t *testing.T) {
	a := withRun(t, web.Config{})
	files := map[string]string{"plain.txt": "plain", "sub/dir/ä&b #%20.bin": "deep", "empty": ""}
	for path, content := range files {
		a.write(path, content)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(a.spaces.Path(a.run.UUID), "link")); err != nil {
		t.Fatal(err)
	}
	ask := func() (gen.DownloadArchiveRes, error) {
		return a.c.DownloadArchive(t.Context(), gen.DownloadArchiveParams{Run: a.run.UUID})
	}
	raw := must[gen.DownloadArchiveRes](t)(ask()).(*gen.DownloadArchiveOKRawApplicationZip).Response
	defer raw.Body.Close()
	body := must[[]byte](t)(io.ReadAll(raw.Body))
	h := raw.Header
	if h.Get("Content-Disposition") != "attachment; filename="+a.run.String()+".zip" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", h)
	}
	archive := must[*zip.Reader](t)(zip.NewReader(bytes.NewReader(body), int64(len(body))))
	got := map[string]string{}
	for _, f := range archive.File {
		r := must[io.ReadCloser](t)(f.Open())
		got[f.Name] = string(must[[]byte](t)(io.ReadAll(r)))
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Error(diff)
	}
	must[*gen.Run](t)(a.delete(0))
	if p := problem(t, second(ask())); p.StatusCode != http.StatusNotFound {
		t.Errorf("deleted: %+v", p)
	}
}

func TestDailyUsage(t *testing.T) {
	a := withRun(t, web.Config{}, "hello")
	claim := a.claim()
	if err := a.store.RecordStep(t.Context(), claim, storage.Spent{Calls: 1, Input: 10, Output: 3, Cost: 7}); err != nil {
		t.Fatal(err)
	}
	days := func(params gen.ListDailyUsageParams) []gen.DailyUsage {
		t.Helper()
		params.Org = storage.DefaultOrg
		return must[[]gen.DailyUsage](t)(a.c.ListDailyUsage(t.Context(), params))
	}
	got := days(gen.ListDailyUsageParams{})
	spent := func(d gen.DailyUsage) bool { return d.Spent == gen.Spent{Calls: 1, Input: 10, Output: 3, Cost: 7} }
	if i := slices.IndexFunc(got, spent); len(got) != 30 || i < 28 {
		t.Errorf("%d days, on %d something: %+v", len(got), i, got)
	}
	if got := days(gen.ListDailyUsageParams{Days: gen.NewOptInt(2)}); len(got) != 2 || got[1].Day.Sub(got[0].Day) != 24*time.Hour {
		t.Errorf("two days: %+v", got)
	}
}
