package page

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentrun/web/gen"
)

func TestHowThingsAreSaid(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	said := func(text string, err error) string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return text
	}
	for want, got := range map[string]string{
		"now": relative(now.Add(-9*time.Second), now), "59 seconds ago": relative(now.Add(-59*time.Second), now),
		"1 minute ago": relative(now.Add(-time.Minute), now), "23 hours ago": relative(now.Add(-24*time.Hour+time.Second), now),
		"1 day ago": relative(now.Add(-47*time.Hour), now), "in 3 days": relative(now.Add(80*time.Hour), now),
		"6 Apr 2026": relative(now.Add(-30*24*time.Hour), now), "4 Aug 2026": relative(now.Add(90*24*time.Hour), now),
		"0 B": said(byteCount(0)), "999 B": said(byteCount(999)), "1 kB": said(byteCount(1000)), "1.2 MB": said(byteCount(int64(1234567))),
		"1 MB": said(byteCount(999_960)), "5 TB": said(byteCount(int64(5e12))), "1000 TB": said(byteCount(int64(1e15))),
		"999": said(tokens(999)), "12.3k": said(tokens(12_345)), "1M": said(tokens(int64(1_000_000))),
		"1": said(count(1)), "1,234": said(count(1234)), "-1,234,567": said(count(-1234567)), "123": said(count(int64(123))),
		"$0.00": said(money(0)), "< $0.0001": said(money(99)), "$0.0123": said(money(12_300)), "$1.00": said(money(1_000_000)), "$1234.50": said(money(1_234_500_000)),
		"12 ms": said(seconds(12 * time.Millisecond)), "1.5 s": said(seconds(1500 * time.Millisecond)), "3 min 20 s": said(seconds(200)),
		"1 d 1 min": said(seconds(86460)), "10 s": said(seconds(10 * time.Second)),
		"a, b": said(join(", ", []string{"a", "b"})), "read keys": said(join(" ", gen.Scopes{gen.ScopeRead, gen.ScopeKeys})),
		"AL": initials("ada.lovelace@example.org"), "B": initials("bob@example.org"), "": initials("@"), "RA": initials("Research and development"), "ÉZ": initials("élan zen"),
		"is-technical_error": statusClass(gen.StatusTechnicalError), "technical error": statusText(gen.StatusTechnicalError),
	} {
		if got != want {
			t.Errorf("%q is said as %q", want, got)
		}
	}
}

func TestTimesAreElements(t *testing.T) {
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.FixedZone("", 3600))
	want := `<time datetime="2026-05-06T06:08:09Z" title="6 May 2026, 06:08:09 UTC">6 May 2026, 06:08:09 UTC</time>`
	for _, value := range []any{at, gen.NewOptDateTime(at)} {
		got, err := when(value)
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	for _, value := range []any{time.Time{}, gen.OptDateTime{}} {
		if got, err := ago(value); got != "never" || err != nil {
			t.Errorf("no time is %q, %v", got, err)
		}
	}
	if got, err := ago(time.Now()); !strings.Contains(string(got), ">now<") || err != nil {
		t.Errorf("now is %q, %v", got, err)
	}
	for name, err := range map[string]error{
		"a text as a time": second(ago("yesterday")), "a text as a number": second(count("many")), "a text as a list": second(join(",", "a")),
		"a name without a value": second(dict("a")), "a name that is none": second(dict(1, 2)),
	} {
		if err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
