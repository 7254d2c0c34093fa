package handler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestTwoWaysToSendAKey(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	good, bad := acc.secret, "ak_"+strings.Repeat("1", 49)
	const (
		authorization = "Authorization"
		header        = "X-API-Key"
	)
	missing, invalid := "Missing API key", "Invalid API key"
	for _, c := range []struct {
		name    string
		headers []string
		refusal string // empty: accepted
	}{
		{"bearer", []string{authorization, "Bearer " + good}, ""},
		{"bearer in lower case", []string{authorization, "bearer " + good}, ""},
		{"bearer in upper case", []string{authorization, "BEARER " + good}, ""},
		{"blanks around the key", []string{authorization, "Bearer   " + good + "  "}, ""},
		{"tabs around the key", []string{authorization, "Bearer\t" + good + "\t"}, ""},
		{"header", []string{header, good}, ""},
		{"header with blanks", []string{header, "  " + good + " "}, ""},
		{"header in another case", []string{"x-api-key", good}, ""},
		{"bearer good, header bad", []string{authorization, "Bearer " + good, header, bad}, ""},
		{"bearer bad, header good", []string{authorization, "Bearer " + bad, header, good}, invalid},
		{"basic, header good", []string{authorization, "Basic dTpw", header, good}, ""},
		{"empty bearer, header good", []string{authorization, "Bearer ", header, good}, ""},
		{"bare bearer, header good", []string{authorization, "Bearer", header, good}, ""},
		{"empty authorization, header good", []string{authorization, "", header, good}, ""},
		{"key without a scheme, header good", []string{authorization, good, header, good}, ""},
		{"bearer twice, first good", []string{authorization, "Bearer " + good, authorization, "Bearer " + bad}, ""},
		{"bearer twice, first bad", []string{authorization, "Bearer " + bad, authorization, "Bearer " + good}, invalid},
		{"basic before bearer", []string{authorization, "Basic dTpw", authorization, "Bearer " + good}, missing},
		{"header twice, first good", []string{header, good, header, bad}, ""},
		{"header twice, first bad", []string{header, bad, header, good}, invalid},
		{"header twice, first empty", []string{header, "", header, good}, missing},
		{"nothing", nil, missing},
		{"basic alone", []string{authorization, "Basic dTpw"}, missing},
		{"empty bearer alone", []string{authorization, "Bearer  "}, missing},
		{"key without a scheme", []string{authorization, good}, missing},
		{"empty header", []string{header, "  "}, missing},
		{"unknown bearer", []string{authorization, "Bearer " + bad}, invalid},
		{"unknown header", []string{header, bad}, invalid},
		{"two words", []string{authorization, "Bearer " + good + " " + good}, invalid},
		{"a key cut short", []string{header, good[:51]}, invalid},
		{"a key in another case", []string{header, strings.ToLower(good)}, invalid},
	} {
		got := a.send(http.MethodGet, "/v1/agents/"+uuid.NewString(), "", c.headers...)
		if c.refusal == "" {
			a.wantDetail(c.name, got, 404, "Agent not found")
			continue
		}
		a.wantDetail(c.name, got, 401, c.refusal)
		if got.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: WWW-Authenticate %q", c.name, got.header.Get("WWW-Authenticate"))
		}
	}
}

func TestUnusableKeysAreAllTheSame(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	ask := func(secret string) string {
		t.Helper()
		got := a.send(http.MethodGet, "/v1/agents/"+uuid.NewString(), "", "Authorization", "Bearer "+secret)
		got.header.Del("Date")
		return fmt.Sprint(got)
	}
	unknown := ask("ak_" + strings.Repeat("1", 49))
	if !strings.Contains(unknown, "Invalid API key") {
		t.Fatal(unknown)
	}
	expiring, short := storagetest.MustExpiringKey(t, a.store, acc.agent, time.Nanosecond)
	if got := ask(short); got != unknown {
		t.Errorf("expired %s: %s", expiring.ID, got)
	}
	if _, err := a.store.SetKeyDisabled(t.Context(), acc.key.ID, true); err != nil {
		t.Fatal(err)
	}
	if got := ask(acc.secret); got != unknown {
		t.Errorf("disabled: %s", got)
	}
	if _, err := a.store.DeleteKey(t.Context(), acc.key.ID); err != nil {
		t.Fatal(err)
	}
	if got := ask(acc.secret); got != unknown {
		t.Errorf("deleted: %s", got)
	}
}

func TestABadKeyComesBeforeABadPath(t *testing.T) {
	a := newAPI(t)
	a.wantDetail("GET", a.send(http.MethodGet, "/v1/agents/nope", "", "X-API-Key", "ak_x"), 401, "Invalid API key")
	a.wantDetail("POST", a.send(http.MethodPost, "/v1/agents", "not JSON", "X-API-Key", "ak_x"), 401, "Invalid API key")
}
