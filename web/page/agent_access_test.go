package page

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
)

var secretText = regexp.MustCompile(`ak_[A-Za-z0-9_]{20,}`)

func TestCreateKey(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, _ := s.mustAgent(programSource)
	path := "/agents/" + agent.ID.String()
	b.get(path+"/access").want(t, http.StatusOK, agent.ID.String(), "ak_YOUR_KEY", s.server.URL)

	created := b.post(path+"/keys", "name", " ci "+hostile, "expires_in", "2592000")
	created.want(t, http.StatusOK, "Copy the key now", "ci &lt;script&gt;", "The new key is in it")
	harmless(t, created.body)
	secret := secretText.FindString(created.body)
	caller, err := s.store.Authenticate(t.Context(), secret)
	if err != nil || caller.AgentID != agent.ID {
		t.Fatalf("secret %q: %+v, %v", secret, caller, err)
	}
	if n := strings.Count(created.body, secret); n != 4 {
		t.Errorf("the secret is on the page %d times, want once by itself and once in each of 3 programs", n)
	}
	if got := created.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	if later := b.get(path + "/access"); strings.Contains(later.body, secret) {
		t.Error("a later page has the secret")
	}
	keys, err := s.store.Keys(t.Context(), agent.ID.String())
	if err != nil || len(keys) != 2 || keys[1].Name != "ci "+hostile || time.Until(keys[1].ExpiresAt).Round(time.Hour) != 30*24*time.Hour {
		t.Errorf("%+v: %v", keys, err)
	}
	b.post(path+"/keys", "name", "x", "expires_in", "5").want(t, http.StatusUnprocessableEntity)
	b.post(path+"/keys", "name", strings.Repeat("x", 300), "expires_in", "0").want(t, http.StatusUnprocessableEntity, "key-problem", strings.Repeat("x", 300))
}

func TestKeyActions(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent(programSource)
	access, key := "/agents/"+agent.ID.String()+"/access", "/agents/"+agent.ID.String()+"/keys/"+caller.KeyID.String()
	b.post(key+"/disable").wantRedirect(t, access)
	b.get(access).want(t, http.StatusOK, "The key is disabled", key+"/enable")
	b.get(key).want(t, http.StatusOK, "disabled", key+"/enable")
	b.post(key+"/enable").wantRedirect(t, access)
	b.get(key).want(t, http.StatusOK, "active", key+"/disable")

	rotated := b.post(key+"/rotate", "overlap", "0")
	rotated.want(t, http.StatusOK, "Copy the key now", "The old key", "expired")
	if _, err := s.store.Authenticate(t.Context(), secretText.FindString(rotated.body)); err != nil {
		t.Errorf("the new key: %v", err)
	}
	b.post(key+"/rotate", "overlap", "-1").want(t, http.StatusUnprocessableEntity)
	b.post(key+"/delete").wantRedirect(t, access)
	b.get(key).want(t, http.StatusNotFound)

	// A key has its page below its own agent only.
	other, _ := s.mustAgent("name: other\ncommand: [cat]\n")
	keys, err := s.store.Keys(t.Context(), agent.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	own, elsewhere := "/agents/"+agent.ID.String()+"/keys/"+keys[0].ID.String(), "/agents/"+other.ID.String()+"/keys/"+keys[0].ID.String()
	b.get(own).want(t, http.StatusOK)
	b.get(elsewhere).want(t, http.StatusNotFound)
	b.post(elsewhere+"/delete").want(t, http.StatusNotFound)
	b.get("/agents/"+agent.ID.String()+"/keys/"+uuid.NewString()).want(t, http.StatusNotFound)
}

func TestKeyRequests(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent(programSource)
	key := "/agents/" + agent.ID.String() + "/keys/" + caller.KeyID.String()
	b.get(key).want(t, http.StatusOK, "No requests yet")
	var first storage.Run
	for i := range requestsPerPage + 1 {
		run := s.mustRun(caller, "Nightly "+hostile)
		if i == 0 {
			first = run
		}
		s.forward(time.Second)
	}
	newest := b.get(key)
	newest.want(t, http.StatusOK, "Nightly &lt;script&gt;", "run created", "Earlier")
	harmless(t, newest.body)
	if strings.Contains(newest.body, "/runs/"+first.ID.String()) {
		t.Error("the first page has the oldest run")
	}
	earlier := regexp.MustCompile(`\?before=[^"]+`).FindString(newest.body)
	b.get(key+strings.ReplaceAll(earlier, "&#43;", "+")).want(t, http.StatusOK, "/runs/"+first.ID.String(), "Newest")
	b.get(key+"?before=x").want(t, http.StatusUnprocessableEntity)
}
