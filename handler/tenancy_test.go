package handler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"agentrun/storage/storagetest"
)

// Row K2: the runs of three agents in each of three organisations. For a key,
// what is not its agent's is answered as what does not exist is, to the byte.
func TestKeysSeeTheirOwnAgentOnly(t *testing.T) {
	a := newAPI(t)
	var accounts []*account
	var runs []uuid.UUID
	for _, org := range []string{"one", "two", "three"} {
		if _, err := a.store.CreateOrg(t.Context(), org); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			file := strings.Replace(storagetest.EchoFile, "name: echo", fmt.Sprintf("name: echo-%d", n), 1)
			acc := a.account(org, file)
			accounts = append(accounts, acc)
			runs = append(runs, acc.mustCreate(acc.request("a secret of "+org)))
		}
	}
	injected := 0
	for i, acc := range accounts {
		ask := func(id uuid.UUID) string {
			got := a.send(http.MethodGet, "/v1/agents/"+id.String(), "", "X-API-Key", acc.secret)
			got.header.Del("Date")
			return fmt.Sprint(got)
		}
		unknown := ask(uuid.New())
		for j, run := range runs {
			got := ask(run)
			if own := strings.Contains(got, "a secret of") || strings.Contains(got, "running"); own != (i == j) {
				t.Errorf("key %d, run %d: %s", i, j, got)
			}
			if i != j && got != unknown {
				t.Errorf("key %d, run %d: %s, an unknown run: %s", i, j, got, unknown)
			}
			injected++
		}
		for j, other := range accounts {
			body := fmt.Sprintf(`{"name":"x","template_id":%q}`, other.agent.ID)
			got := a.send(http.MethodPost, "/v1/agents", body, "X-API-Key", acc.secret, "Content-Type", "application/json")
			if want := map[bool]int{true: 201, false: 403}[i == j]; got.status != want {
				t.Errorf("key %d, agent %d: %d %s", i, j, got.status, got.body)
			}
		}
	}
	t.Logf("%d injected, %d survived", injected, injected)
}
