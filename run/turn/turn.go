// Package turn is the turn of an agent that is a model: the loop between the
// model and its tools, from an input to the final output. Whatever happens is
// given away to be recorded before the next thing is done, so that a turn which
// is cut off can go on from its record. The package keeps nothing, and knows
// neither storage nor HTTP nor what tools do.
package turn

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// Tools are what the model may call.
type Tools interface {
	// Tools are what the model is told of them.
	Tools() []model.Tool
	// ReadOnly says whether a call of a tool can be repeated without harm.
	ReadOnly(name string) bool
	// Call makes a call. What went wrong with it is a result; an error means that
	// our own machinery broke, or that ctx ended.
	Call(ctx context.Context, call model.ToolCall) (model.ToolResult, error)
}

// Config of a turn.
type Config struct {
	Client model.Client
	// Model is the model's name as its provider knows it.
	Model        string
	Instructions string
	Tools        Tools
	// History is the conversation so far. It ends with the turn's input, or with
	// what the turn has recorded before it was cut off.
	History []model.Message
	// Input is the turn's input, which a summary does not replace.
	Input string
	// Begun are the IDs of the calls in the last message that were begun and not
	// answered when the turn was cut off.
	Begun  map[string]bool
	Limits Limits
	// Spent is what was spent before.
	Spent Spent
	// Record makes an entry durable before it returns.
	Record func(ctx context.Context, e Entry) error
}

// Result is what came of a turn: an output, or the reason why there is none.
type Result struct {
	Output  string
	Failure string
}

// Entry is what happened in a turn; exactly one of its fields is set.
type Entry struct {
	Answered  *Answered
	Called    *model.ToolCall
	Returned  *Returned
	Compacted *Compacted
}

// Answered is an answer of the model.
type Answered struct {
	Answer model.Answer
	Took   time.Duration
}

// Returned is what came of a call.
type Returned struct {
	Call   model.ToolCall
	Result model.ToolResult
	// Took is 0 for a call that was not made.
	Took time.Duration
}

// Compacted says that a summary stands for the conversation so far.
type Compacted struct {
	Summary string
	// Messages counts what the summary stands for.
	Messages int
	Usage    model.Usage
}

// Interrupted is what the model is told of a call whose end nobody saw.
const Interrupted = "The server was stopped while this call was under way. It may have been done, or not, or in part. It was not made again."

// turn is a turn under way.
type turn struct {
	Config
	history []model.Message
	spent   Spent
	size    size
}

// Run runs the turn to its end. What the model, its provider or a tool did wrong
// is in the result; an error means that our own machinery broke, or that ctx
// ended.
func Run(ctx context.Context, cfg Config) (Result, error) {
	t := &turn{Config: cfg, history: slices.Clone(cfg.History), spent: cfg.Spent}
	for {
		if err := t.act(ctx); err != nil {
			return Result{}, err
		}
		if text, done := t.output(); done {
			return Result{Output: text}, nil
		}
		failure, err := t.ask(ctx)
		if err != nil || failure != "" {
			return Result{Failure: failure}, err
		}
	}
}

// output is what the model has said, once it wants nothing more to be done.
func (t *turn) output() (text string, done bool) {
	last := t.history[len(t.history)-1]
	return last.Text, last.Role == model.RoleModel && len(last.Calls) == 0
}

// act makes the calls of the model's last message that have no result yet.
func (t *turn) act(ctx context.Context) error {
	for _, call := range unanswered(t.history) {
		began := time.Now()
		result, err := t.call(ctx, call)
		if err != nil {
			return err
		}
		r := &Returned{Call: call, Result: result, Took: time.Since(began)}
		if err := t.Record(ctx, Entry{Returned: r}); err != nil {
			return err
		}
		t.history = append(t.history, model.Message{Role: model.RoleTool, Result: &result})
	}
	t.Begun = nil // Another answer may use the same IDs again.
	return nil
}

// call makes one call, unless it was begun in an earlier life and may have had
// its effect.
func (t *turn) call(ctx context.Context, call model.ToolCall) (model.ToolResult, error) {
	if t.Begun[call.ID] && !t.Tools.ReadOnly(call.Name) {
		return model.ToolResult{CallID: call.ID, Text: Interrupted, Failed: true}, nil
	}
	if err := t.Record(ctx, Entry{Called: &call}); err != nil {
		return model.ToolResult{}, err
	}
	result, err := t.Tools.Call(ctx, call)
	result.CallID = call.ID
	return result, err
}

// unanswered are the calls of the last message of the model that no result
// follows.
func unanswered(history []model.Message) []model.ToolCall {
	answered := map[string]bool{}
	for i := len(history) - 1; i >= 0; i-- {
		switch m := history[i]; m.Role {
		case model.RoleTool:
			answered[m.Result.CallID] = true
		case model.RoleModel:
			var left []model.ToolCall
			for _, c := range m.Calls {
				if !answered[c.ID] {
					left = append(left, c)
				}
			}
			return left
		default:
			return nil
		}
	}
	return nil
}

// ask has the model answer, and says why it cannot go on, if it cannot. What is
// too long for the model is compacted, once.
func (t *turn) ask(ctx context.Context) (failure string, err error) {
	tooLong := t.tooLong()
	for range 2 {
		if tooLong {
			if failure, err := t.compact(ctx); err != nil || failure != "" {
				return failure, err
			}
		}
		failure, err = t.step(ctx)
		if tooLong || !errors.Is(err, model.ErrTooLong) {
			break
		}
		tooLong = true
	}
	return refusal(ctx, failure, err)
}

// step asks the model and takes its answer. Its errors are those of a Client
// too.
func (t *turn) step(ctx context.Context) (failure string, err error) {
	began := time.Now()
	answer, failure, err := t.request(ctx, model.Request{
		Model: t.Model, Instructions: t.Instructions, Messages: t.history, Tools: t.Tools.Tools(),
	})
	if err != nil || failure != "" {
		return failure, err
	}
	if err := t.Record(ctx, Entry{Answered: &Answered{Answer: answer, Took: time.Since(began)}}); err != nil {
		return "", err
	}
	t.history = append(t.history, answer.Message)
	t.size = size{messages: len(t.history), tokens: answer.Usage.Total()}
	switch answer.Stop {
	case model.StopRefused:
		return "the provider kept the model's answer back", nil
	case model.StopLength:
		return "the model's answer was cut off at its limit of tokens", nil
	default:
		return "", nil
	}
}

// request asks the model, within the limits.
func (t *turn) request(ctx context.Context, r model.Request) (answer model.Answer, failure string, err error) {
	var most int
	if most, failure = t.Limits.allow(t.spent, estimate(r)); failure != "" {
		return answer, failure, nil
	}
	r.MaxTokens = most
	answer, err = t.Client.Call(ctx, r)
	usage := answer.Usage.Add(answer.Lost)
	var e *model.Error
	if errors.As(err, &e) {
		usage = e.Usage
	}
	t.spent = t.spent.after(usage, t.Limits.Price)
	return answer, "", err
}

// refusal makes what a model's provider did wrong the turn's failure.
func refusal(ctx context.Context, failure string, err error) (string, error) {
	var e *model.Error
	if ctx.Err() == nil && errors.As(err, &e) {
		return e.Error(), nil
	}
	return failure, err
}
