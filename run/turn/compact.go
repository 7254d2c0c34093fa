package turn

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// A conversation that outgrows what the model can read is not cut: the model
// itself writes down what matters of it, that is recorded, and the turn goes on
// with its input and the summary.

const (
	// bytesPerToken is what a token stands for at the least in the usual
	// languages, so that an estimate is rather too high.
	bytesPerToken = 3
	// answerRoom is what is left of a window for the answer: a quarter, and no
	// more than this.
	answerRoom = 8192
	// excerpts are how many bytes of each message a model that is to write a
	// summary gets, from the first attempt to the last.
	excerpt, leastExcerpt = 8000, 500
)

const compactInstructions = `You write summaries of conversations between a user, an assistant and its tools, for the assistant, who goes on from your summary alone.
Keep: what the user wants, decisions, facts that were found out, names of files and what was done to them, results, errors, and what is still to do.
Leave out: pleasantries and what is obsolete. Write plain text.`

// size is what is known of how long the conversation is.
type size struct {
	// messages is how many of the first ones have tokens.
	messages int
	tokens   int64
}

// tooLong says whether the conversation may leave no room for an answer.
func (t *turn) tooLong() bool {
	if t.Limits.Window == 0 {
		return false
	}
	tokens := t.size.tokens + estimate(model.Request{Messages: t.history[t.size.messages:]})
	if t.size.messages == 0 {
		tokens += estimate(model.Request{Instructions: t.Instructions, Tools: t.Tools.Tools()})
	}
	return tokens > t.Limits.Window-min(t.Limits.Window/4, answerRoom) && len(t.history) > 1
}

// estimate is about how many tokens a request has, rather too many.
func estimate(r model.Request) int64 {
	bytes := len(r.Instructions)
	for _, m := range r.Messages {
		bytes += len(m.Text) + len(m.Opaque)
		for _, c := range m.Calls {
			bytes += len(c.Name) + len(c.Arguments)
		}
		if m.Result != nil {
			bytes += len(m.Result.Text)
		}
	}
	for _, tool := range r.Tools {
		bytes += len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	return int64(bytes)/bytesPerToken + int64(len(r.Messages))
}

// compact has the model write a summary, which then stands for the
// conversation.
func (t *turn) compact(ctx context.Context) (failure string, err error) {
	for most := excerpt; ; most /= 4 {
		answer, failure, err := t.request(ctx, model.Request{
			Model: t.Model, Instructions: compactInstructions,
			Messages: []model.Message{{Role: model.RoleUser, Text: render(t.history, most)}}, Summary: true,
		})
		if errors.Is(err, model.ErrTooLong) && most/4 >= leastExcerpt {
			continue
		}
		if err != nil || failure != "" {
			return refusal(ctx, failure, err)
		}
		summary := strings.TrimSpace(answer.Message.Text)
		if summary == "" {
			return "the conversation is longer than the model can read, and it wrote no summary", nil
		}
		c := &Compacted{Summary: summary, Messages: len(t.history), Usage: answer.Usage}
		if err := t.Record(ctx, Entry{Compacted: c}); err != nil {
			return "", err
		}
		t.history = []model.Message{Summarised(summary, t.Input)}
		t.size = size{}
		return "", nil
	}
}

// Summarised is the message with which a conversation goes on after a summary.
func Summarised(summary, input string) model.Message {
	return model.Message{Role: model.RoleUser, Text: "What happened so far, as you wrote it down when the conversation became too long:\n\n" +
		summary + "\n\nThe input that you are working on:\n\n" + input}
}

// render writes a conversation as text, with at most so many bytes of each
// message.
func render(history []model.Message, most int) string {
	var b strings.Builder
	for _, m := range history {
		switch {
		case m.Result != nil:
			fmt.Fprintf(&b, "[tool] %s\n", shorten(m.Result.Text, most))
		default:
			fmt.Fprintf(&b, "[%s] %s\n", m.Role, shorten(m.Text, most))
		}
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "[call] %s %s\n", c.Name, shorten(c.Arguments, most))
		}
	}
	return b.String()
}

// shorten keeps the beginning and the end of a text.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most/2], text[len(text)-most/2:]
	return fmt.Sprintf("%s [%d bytes left out] %s", strings.ToValidUTF8(head, ""), len(text)-most, strings.ToValidUTF8(tail, ""))
}
