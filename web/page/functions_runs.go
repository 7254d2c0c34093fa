package page

import (
	"html/template"
	"time"

	"agentrun/storage"
	"agentrun/web/gen"
)

// runFunctions are what only the templates of runs call.
var runFunctions = template.FuncMap{
	"clock":    timeOfDay, // {{clock .At}}: 15:04:05, as <time>.
	"lasted":   lasted,    // {{lasted .Took}}: a time.Duration in its larger units.
	"spending": spending,  // {{spending .Spent}}: 12.3k tokens, $0.0123; empty when none.
	"whole":    whole,     // {{whole .At}}: 2 Jan 2026, 15:04:05 UTC, as text.
}

// timeOfDay is the time of day, of what happened among other things of that day.
func timeOfDay(t time.Time) template.HTML { return timeElement(t, t.UTC().Format("15:04:05")) }

// whole is a time written out, where no element can be.
func whole(t time.Time) string { return t.UTC().Format(fullTime) }

// lasted is how long something took; of what took hours no seconds are shown.
func lasted(d time.Duration) string {
	d = max(0, d)
	switch {
	case d >= 24*time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	}
	text, _ := seconds(d) // It fails for what is no time.
	return text
}

// took is how long a run has gone on.
func took(status gen.Status, created, updated time.Time) time.Duration {
	if status == gen.StatusRunning {
		return time.Since(created)
	}
	return updated.Sub(created)
}

// secondsText is how long something took, empty for no time.
func secondsText(s float64) string {
	if s <= 0 {
		return ""
	}
	return lasted(time.Duration(s * float64(time.Second)))
}

func bytesText(n int64) string {
	text, _ := byteCount(n) // These fail for what is no number.
	return text
}

func countText(n int64, one, more string) string {
	text, _ := count(n)
	if n == 1 {
		return text + " " + one
	}
	return text + " " + more
}

// spentText says how many tokens something took, and what they cost if known.
func spentText(s storage.Spent) string {
	if s.Tokens() == 0 {
		return ""
	}
	text, _ := tokens(s.Tokens())
	if text += " tokens"; s.Cost > 0 {
		cost, _ := money(s.Cost)
		text += ", " + cost
	}
	return text
}

// spending is spentText of what the API answers with.
func spending(value any) string {
	switch v := value.(type) {
	case gen.OptSpent:
		return spentText(storage.Spent(v.Value))
	case gen.Spent:
		return spentText(storage.Spent(v))
	}
	return ""
}
