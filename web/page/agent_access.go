package page

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun/web/gen"
)

// agentAccessData is how programs reach an agent: its keys and examples.
type agentAccessData struct {
	agentHead
	Keys []keyRow
	// Created is a new key, with the secret that only this page holds; nil when
	// none was made.
	Created *gen.CreatedKey
	// Rotated is the key that Created takes the place of, nil when there is none.
	Rotated *keyRow
	// Name and Problem are those of the form for a key that was refused.
	Name, Problem string
	Lives         []span
	Snippets      []Snippet
	BaseURL       string
}

// span is a choice of a time.
type span struct {
	Seconds int
	Name    string
}

const (
	hourSeconds = 3600
	daySeconds  = 24 * hourSeconds
)

var (
	// keyLives are how long a new key may live; no seconds mean for good.
	keyLives = []span{{0, "never"}, {30 * daySeconds, "in 30 days"}, {90 * daySeconds, "in 90 days"}, {365 * daySeconds, "in a year"}}
	// keyOverlaps are how long a key may still be used beside the one that takes
	// its place. The longest is for programs that are deployed once a week.
	keyOverlaps = []span{{0, "now"}, {hourSeconds, "in 1 hour"}, {daySeconds, "in 1 day"}, {7 * daySeconds, "in 7 days"}}
)

// chosen is the choice of this many seconds, as a form sends it.
func chosen(spans []span, seconds string) (span, error) {
	i := slices.IndexFunc(spans, func(s span) bool { return strconv.Itoa(s.Seconds) == seconds })
	if i < 0 {
		return span{}, refuse(http.StatusUnprocessableEntity, "Choose one of the times that the form offers.")
	}
	return spans[i], nil
}

func (a *App) agentAccess(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	return a.showAccess(w, r, http.StatusOK, v, &agentAccessData{agentHead: agentHead{Agent: agent}})
}

// placeholder stands in the examples for a key.
const placeholder = "ak_YOUR_KEY"

// showAccess adds what every page of API access has.
func (a *App) showAccess(w http.ResponseWriter, r *http.Request, status int, v *view, data *agentAccessData) error {
	keys, err := a.api.ListKeys(r.Context(), gen.ListKeysParams{Agent: data.Agent.ID.String()})
	if err != nil {
		return err
	}
	now := time.Now()
	for _, key := range slices.Backward(keys) {
		data.Keys = append(data.Keys, newKeyRow(key, now))
	}
	key := placeholder
	if data.Created != nil {
		key = data.Created.Key
	}
	data.Tab, data.Lives, data.BaseURL = "access", keyLives, v.BaseURL
	data.Snippets = Snippets(v.BaseURL, data.Agent.ID.String(), key)
	v.Title, v.Data = data.Agent.Name+", API access", data
	return a.show(w, r, status, "agent_access", v)
}

// keyCreate makes a key and shows its secret in the answer itself, which is
// nowhere else.
func (a *App) keyCreate(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	life, err := chosen(keyLives, r.PostFormValue("expires_in"))
	if err != nil {
		return err
	}
	data := &agentAccessData{agentHead: agentHead{Agent: agent}, Name: strings.TrimSpace(r.PostFormValue("name"))}
	req := &gen.CreateKeyReq{}
	if data.Name != "" {
		req.Name = gen.NewOptName(gen.Name(data.Name))
	}
	if life.Seconds > 0 {
		req.ExpiresIn = gen.NewOptInt(life.Seconds)
	}
	data.Created, err = a.api.CreateKey(r.Context(), req, gen.CreateKeyParams{Agent: agent.ID.String()})
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		data.Created, data.Problem = nil, problem.Detail
		return a.showAccess(w, r, problem.Status, v, data)
	}
	data.Name = ""
	return a.showAccess(w, r, http.StatusOK, v, data)
}

// keyRotate makes the key that takes a key's place, and shows its secret like
// keyCreate.
func (a *App) keyRotate(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, key, err := a.enterKey(r, v)
	if err != nil {
		return err
	}
	overlap, err := chosen(keyOverlaps, r.PostFormValue("overlap"))
	if err != nil {
		return err
	}
	created, err := a.api.RotateKey(r.Context(), &gen.RotateKeyReq{Overlap: gen.NewOptInt(overlap.Seconds)}, gen.RotateKeyParams{Key: key.ID})
	if err != nil {
		return err
	}
	return a.showAccess(w, r, http.StatusOK, v, &agentAccessData{agentHead: agentHead{Agent: agent}, Created: created, Rotated: &key})
}
