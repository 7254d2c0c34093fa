package web_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/storage"
)

// tenant is an organisation with a member, who has a token for everything.
type tenant struct {
	token  string
	agents []map[string]string // what names each agent and what belongs to it
	names  map[string]string   // by the kinds that have names; of the first agent
}

// newTenant makes an organisation with three agents. All names are of one length.
func newTenant(s *scene, i int) *tenant {
	s.t.Helper()
	name := fmt.Sprintf("tenant-%d", i)
	must[storage.Org](s.t)(s.store.CreateOrg(s.t.Context(), name))
	user := s.user(name+"@example.org", storage.MemberRole, name)
	token, secret := s.token(user, allScopes...)
	tn := &tenant{token: secret, names: map[string]string{"org": name, "user": user.Email, "agent": fmt.Sprintf("agent-%d-0", i)}}
	for j := range 3 {
		ids := s.agent(name, fmt.Sprintf("agent-%d-%d", i, j))
		ids["user"], ids["token"] = user.ID.String(), token.ID.String()
		tn.agents = append(tn.agents, ids)
	}
	return tn
}

// unknown returns what names nothing and stands beside an ID or a name in every
// order, as long as it.
func unknown(id string) string {
	if parsed, err := uuid.Parse(id); err == nil {
		parsed[len(parsed)-1] ^= 1
		return parsed.String()
	}
	return strings.Replace(id, "-", "_", 1)
}

// seen is an answer without the ID that was asked for.
func seen(a answer, ids map[string]string) answer {
	// A name may be a part of a longer one.
	longest := func(x, y string) int { return cmp.Or(len(ids[y])-len(ids[x]), strings.Compare(x, y)) }
	for _, kind := range slices.SortedFunc(maps.Keys(ids), longest) {
		a.body = strings.ReplaceAll(a.body, ids[kind], "{"+kind+"}")
	}
	return a
}

// TestTenantsDoNotExistForOneAnother calls every operation for a member of one
// organisation with every kind of ID of another one. What comes back is to the
// last byte what comes back for an ID that nothing has.
func TestTenantsDoNotExistForOneAnother(t *testing.T) {
	s := newScene(t)
	s.user("op@example.org", storage.OperatorRole, "")
	var tenants []*tenant
	for i := range 3 {
		tenants = append(tenants, newTenant(s, i))
	}
	before := s.everything()
	compared := 0
	for _, victim := range tenants {
		for _, attacker := range tenants {
			if attacker == victim {
				continue
			}
			for _, ids := range append(slices.Clone(victim.agents), withNames(victim)) {
				compared += s.attack(attacker, victim, ids)
			}
		}
	}
	if diff := gocmp.Diff(before, s.everything()); diff != "" {
		t.Errorf("something was changed:\n%s", diff)
	}
	t.Logf("%d answers compared", compared)
	if compared < 500 {
		t.Error("too few")
	}
	s.control(tenants[0])
}

// withNames are the IDs of a tenant's first agent, and names in place of those
// that can be named.
func withNames(tn *tenant) map[string]string {
	ids := maps.Clone(tn.agents[0])
	maps.Copy(ids, tn.names)
	return ids
}

// attack calls every operation with the IDs of somebody else's, and returns how
// many answers it compared.
func (s *scene) attack(attacker, victim *tenant, ids map[string]string) (compared int) {
	s.t.Helper()
	strangers := map[string]string{}
	for kind, id := range ids {
		strangers[kind] = unknown(id)
	}
	for _, o := range operations {
		got := s.call(o, attacker.token, ids)
		if !slices.ContainsFunc([]string{"org", "agent", "key", "run", "user", "token"}, o.takes) {
			// It is about the attacker, and tells of nobody else.
			for _, id := range append(slices.Collect(maps.Values(victim.names)), slices.Collect(maps.Values(ids))...) {
				if strings.Contains(got.body, id) {
					s.t.Errorf("%s tells of %s", o, id)
				}
			}
			continue
		}
		want := s.call(o, attacker.token, strangers)
		compared++
		if diff := gocmp.Diff(seen(want, strangers), seen(got, ids), gocmp.AllowUnexported(answer{})); diff != "" {
			s.t.Errorf("%s: unknown (-) and somebody else's (+):\n%s", o, diff)
		}
	}
	return compared
}

// control calls every operation with the tenant's own IDs: the answers differ
// from those for unknown ones, but where members may nothing.
func (s *scene) control(own *tenant) {
	s.t.Helper()
	ids, strangers := own.agents[0], map[string]string{}
	for kind, id := range ids {
		strangers[kind] = unknown(id)
	}
	for _, o := range operations {
		got, other := s.call(o, own.token, ids), s.call(o, own.token, strangers)
		mine := asker{user: storage.User{Role: storage.MemberRole}, scopes: allScopes}.may(o)
		if mine && got.status != http.StatusOK && got.status != http.StatusCreated {
			s.t.Errorf("%s with one's own: %+v", o, got)
		}
		about := slices.ContainsFunc([]string{"org", "agent", "key", "run", "token"}, o.takes)
		if mine && about && gocmp.Equal(seen(got, ids), seen(other, strangers), gocmp.AllowUnexported(answer{})) {
			s.t.Errorf("%s: one's own cannot be told from an unknown one: %+v", o, got)
		}
	}
}

// everything is what the server knows of the tenants.
func (s *scene) everything() []any {
	s.t.Helper()
	ctx := s.t.Context()
	runs, _, err := s.store.Runs(ctx, storage.RunFilter{})
	if err != nil {
		s.t.Fatal(err)
	}
	agents := must[[]storage.Agent](s.t)(s.store.Agents(ctx, nil))
	all := []any{runs, agents, must[[]storage.User](s.t)(s.store.Users(ctx)), must[[]storage.Org](s.t)(s.store.Orgs(ctx))}
	for _, agent := range agents {
		all = append(all, must[[]storage.Key](s.t)(s.store.Keys(ctx, agent.ID.String())))
	}
	return all
}
