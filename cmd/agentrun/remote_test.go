package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/web"
	"agentrun/web/gen"
)

// remoteServer is the management API of a server of that version, and a token
// that reads.
func remoteServer(t *testing.T, version string) *remote {
	t.Helper()
	store := storagetest.Open(t)
	user, err := store.SetUp(t.Context(), "op@example.org", "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	actor, err := store.UserActor(t.Context(), user.ID, user.Generation, "")
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := store.CreateToken(storage.WithActor(t.Context(), actor), "test", []storage.Scope{storage.ScopeRead}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	api, err := web.NewManagement(web.Config{Store: store, Workspaces: storagetest.Workspaces(t), Version: version}).HTTP()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return &remote{server.URL, token}
}

// Another version is told once, after what was asked for is done.
func TestRemoteVersion(t *testing.T) {
	for version, want := range map[string]string{
		buildVersion(): "",
		"v9\x1b[31m":   "agentrun: warning: the server is agentrun v9\\x1b[31m, and this is " + buildVersion() + "\n",
	} {
		r := remoteServer(t, version)
		list := func(c *gen.Client) error {
			_, err := c.ListOrgs(t.Context())
			return err
		}
		var notes strings.Builder
		if err := r.call(t.Context(), &notes, list); err != nil || notes.String() != want {
			t.Errorf("%q: %q, %v", version, notes.String(), err)
		}
		notes.Reset()
		failed := errors.New("failed")
		if err := r.call(t.Context(), &notes, func(*gen.Client) error { return failed }); !errors.Is(err, failed) || notes.Len() > 0 {
			t.Errorf("%q: %q, %v", version, notes.String(), err)
		}
	}
}

// A server that sends somebody elsewhere gets no second request, and nobody else
// gets the token.
func TestRemoteFollowsNothing(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	var notes strings.Builder
	err := (&remote{server.URL, "am_secret"}).call(t.Context(), &notes, func(c *gen.Client) error {
		_, err := c.CreateOrg(context.Background(), &gen.CreateOrgReq{Name: "x"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "check --server") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestInTheOpen(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8080": "", "http://localhost": "", "http://[::1]:80": "", "https://agents.example.org": "", "http://127.9.9.9": "",
		"http://agents.example.org": "agents.example.org", "http://10.0.0.1:8080/x": "10.0.0.1", "http://[2001:db8::1]": "2001:db8::1",
		"http://localhost.example.org": "localhost.example.org",
	} {
		if got := (&remote{url: address}).inTheOpen(); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
