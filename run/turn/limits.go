package turn

import (
	"fmt"

	"agentrun/run/model"
)

// Limits of a turn. Each is looked at before the model is asked, so that it
// bites before more is spent. Zero means that there is none.
type Limits struct {
	// Steps is the most answers of the model.
	Steps int
	// Tokens is the most tokens of the turn's requests and answers.
	Tokens int64
	// Cost is the most that the run may cost, in millionths of a US dollar.
	Cost int64
	// Price is that of the model's tokens.
	Price model.Price
	// Window is how many tokens the model can read and write at once.
	Window int64
}

// Spent is what counts against the limits.
type Spent struct {
	// Steps and Tokens are those of the turn.
	Steps  int
	Tokens int64
	// Cost is that of the run, in millionths of a US dollar.
	Cost int64
}

func (s Spent) after(u model.Usage, p model.Price) Spent {
	return Spent{Steps: s.Steps + 1, Tokens: s.Tokens + u.Total(), Cost: s.Cost + p.Cost(u)}
}

// allow says how many tokens an answer may have after a request of about so many
// (0 for as many as the provider gives), or which limit is in its way.
func (l Limits) allow(spent Spent, request int64) (most int, failure string) {
	if l.Steps > 0 && spent.Steps >= l.Steps {
		return 0, fmt.Sprintf("the limit of %d steps was reached (limits.steps)", l.Steps)
	}
	left := int64(0)
	if l.Tokens > 0 {
		if left = l.Tokens - spent.Tokens - request; left <= 0 {
			return 0, fmt.Sprintf("the limit of %d tokens was reached: %d are spent, and the next request has about %d (limits.tokens)", l.Tokens, spent.Tokens, request)
		}
	}
	if l.Cost > 0 {
		room := l.Cost - spent.Cost - l.Price.Cost(model.Usage{Input: request})
		if room <= 0 {
			return 0, fmt.Sprintf("the limit of %s was reached: the run has cost %s (limits.cost)", Dollars(l.Cost), Dollars(spent.Cost))
		}
		if words := l.Price.Tokens(room); words > 0 && (left == 0 || words < left) {
			left = words
		}
	}
	return int(left), ""
}

// Dollars writes millionths of a US dollar for people.
func Dollars(millionths int64) string { return fmt.Sprintf("$%.6g", float64(millionths)/1e6) }
