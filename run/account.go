package run

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/run/gateway"
	"agentrun/run/model"
	"agentrun/run/sandbox"
	"agentrun/run/turn"
	"agentrun/storage"
)

// maxFailedCalls is how many failed calls of models a turn's history tells of.
const maxFailedCalls = 100

// account is what the programs of a turn spend on models.
type account struct {
	server *Server
	turn   *storage.Turn

	mu sync.Mutex
	// spent has what was used, and what is reserved for calls under way.
	spent  turn.Spent
	failed int
}

// openModels opens the models that a turn's programs may use, or says for people
// why it cannot.
func (s *Server) openModels(ctx context.Context, t *storage.Turn) (models gateway.Models, failure string, err error) {
	if len(t.Definition.Gateway) == 0 {
		return models, "", nil
	}
	if s.sandbox.Level() != string(sandbox.Full) {
		return models, "the agent file lets programs use models (gateway), and only the sandbox level full has a way to them", nil
	}
	for _, name := range t.Definition.Gateway {
		p, known := s.providers[name]
		switch {
		case !known:
			return models, fmt.Sprintf("the agent file lets programs use models of '%s' (gateway), and no such provider is configured on this server", name), nil
		case p.Upstream == nil:
			return models, fmt.Sprintf("the agent file lets programs use models of '%s' (gateway), which is a script and has no address that they could use", name), nil
		}
		models.Providers = append(models.Providers, gateway.Provider{
			Name: name, Dialect: gateway.Dialect(p.Upstream.Dialect), BaseURL: p.Upstream.BaseURL, Key: p.Upstream.Key,
		})
	}
	a := &account{server: s, turn: t}
	if err := a.recall(ctx); err != nil {
		return models, "", err
	}
	models.Permit = a.permit
	models.Reserve = func(_ context.Context, name string, most model.Usage) (func(gateway.Call) error, error) {
		// What was spent is recorded as long as the turn lasts, also when the
		// program has left.
		return a.reserve(ctx, name, most)
	}
	return models, "", nil
}

// recall finds what was spent before: by the run, and by this turn in an
// earlier life of the server.
func (a *account) recall(ctx context.Context) error {
	run, err := a.server.store.Run(ctx, a.turn.Run.ID)
	if err != nil {
		return err
	}
	a.spent.Cost = run.Spent.Cost
	_, events, err := a.server.store.StateAndEvents(ctx, a.turn.Run.ID, 0, 0)
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Kind != storage.EventModelCalled || e.Turn != a.turn.Run.Turn {
			continue
		}
		var c storage.ModelCalled
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return errors.Wrapf(err, "run %s: event %d", a.turn.Run.ID, e.Seq)
		}
		a.spent.Steps += int(c.Spent.Calls)
		a.spent.Tokens += c.Spent.Tokens()
	}
	return nil
}

// permit says whether the organisation allows a model.
func (a *account) permit(ctx context.Context, name string) error {
	err := a.server.store.ModelAllowed(ctx, a.turn.Run.OrgID, name)
	if refused := new(storage.ModelError); errors.As(err, &refused) {
		return &gateway.Denied{Code: "model_not_allowed", Why: refused.Error()}
	}
	return err
}

// reserve takes what a call can use at most, as far as its request says. What an
// answer without a bound has can exceed a limit, and then no other call is made.
func (a *account) reserve(ctx context.Context, name string, most model.Usage) (settle func(gateway.Call) error, err error) {
	provider, modelName, _ := a.server.provider(name)
	price := provider.price(modelName)
	a.mu.Lock()
	defer a.mu.Unlock()
	if why := a.reached(most, price); why != "" {
		return nil, &gateway.Denied{Code: "limit_reached", Why: why}
	}
	reserved := turn.Spent{Steps: 1, Tokens: most.Total(), Cost: price.Cost(most)}
	a.add(reserved, 1)
	began := time.Now()
	return func(c gateway.Call) error {
		spent, err := a.record(ctx, c, price, time.Since(began))
		a.mu.Lock()
		defer a.mu.Unlock()
		a.add(reserved, -1)
		a.add(turn.Spent{Steps: int(spent.Calls), Tokens: spent.Tokens(), Cost: spent.Cost}, 1)
		return err
	}, nil
}

func (a *account) add(s turn.Spent, sign int) {
	a.spent.Steps += sign * s.Steps
	a.spent.Tokens += int64(sign) * s.Tokens
	a.spent.Cost += int64(sign) * s.Cost
}

// reached says which limit is in the way of another call.
func (a *account) reached(most model.Usage, price model.Price) string {
	l := a.turn.Definition.Limits
	tokens := int64(l.Tokens)
	switch {
	case a.spent.Steps >= l.StepCount():
		return fmt.Sprintf("the limit of %d answers of models in a turn was reached (limits.steps)", l.StepCount())
	case tokens > 0 && a.spent.Tokens+most.Total() > tokens:
		return fmt.Sprintf("the limit of %d tokens was reached: %d are spent or reserved, and the request and its answer can have %d (limits.tokens)",
			tokens, a.spent.Tokens, most.Total())
	case l.Cost > 0 && a.spent.Cost+price.Cost(most) > l.Cost:
		return fmt.Sprintf("the limit of %s was reached: the run has cost %s, with what is reserved (limits.cost)",
			turn.Dollars(l.Cost), turn.Dollars(a.spent.Cost))
	}
	return ""
}

// record makes a call durable.
func (a *account) record(ctx context.Context, c gateway.Call, price model.Price, took time.Duration) (storage.Spent, error) {
	var spent storage.Spent
	if c.Answered() || c.Estimated {
		spent = storage.Spent{Calls: 1, Input: c.Usage.Input, Cached: c.Usage.Cached, Output: c.Usage.Output, Cost: price.Cost(c.Usage)}
	} else if !a.tell() {
		return spent, nil
	}
	var e events
	e.add(storage.EventModelCalled, storage.ModelCalled{
		Model: c.Model, Spent: spent, Seconds: took.Seconds(), Status: c.Status, Estimated: c.Estimated,
	})
	if e.err != nil {
		return spent, e.err
	}
	log := a.server.log.With(zap.Stringer("run", a.turn.Run.ID), zap.Uint64("turn", a.turn.Run.Turn))
	return spent, a.server.insist(ctx, log, "record a call of a model", func() error {
		return a.server.store.RecordStep(context.WithoutCancel(ctx), a.turn.Claim, spent, e.list...)
	})
}

// tell says whether the history tells of one more failed call.
func (a *account) tell() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed++
	return a.failed <= maxFailedCalls
}
