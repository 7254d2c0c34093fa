package page

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/web/asset"
	"agentrun/web/gen"
	"agentrun/web/markup"
)

// functions are what templates can call. Those that only one area's pages need
// are declared beside these pages, in agentFunctions and runFunctions.
var functions = mergedFunctions(template.FuncMap{
	"asset":       asset.URL,       // {{asset "app.js"}}: the address of a file.
	"style":       style,           // {{style "app.css"}}: a style sheet, as <style>.
	"ago":         ago,             // {{ago .CreatedAt}}: 5 minutes ago, as <time>.
	"when":        when,            // {{when .CreatedAt}}: 2 Jan 2026, 15:04:05 UTC, as <time>.
	"bytes":       byteCount,       // {{bytes .Size}}: 1.2 MB
	"count":       count,           // {{count .Turns}}: 1,234
	"tokens":      tokens,          // {{tokens .Input}}: 12.3k
	"money":       money,           // {{money .Cost}}, of millionths of a dollar: $0.0123
	"seconds":     seconds,         // {{seconds .Timeout}}, of a time.Duration or whole seconds: 3 min 20 s
	"short":       short,           // {{short .ID}}: the first 8 characters of an ID.
	"markdown":    markup.Markdown, // {{markdown .Text}}: what an agent wrote, as safe HTML.
	"terminal":    markup.Terminal, // {{terminal .Text}}: what a program printed, without control characters.
	"dict":        dict,            // {{template "icon" dict "name" "key"}}: several values for one part.
	"join":        join,            // {{join ", " .Scopes}}
	"initials":    initials,        // {{initials .Email}}: AB
	"statusClass": statusClass,     // {{statusClass .Status}}: the class of a run's status.
	"statusText":  statusText,      // {{statusText .Status}}: technical error
}, agentFunctions, runFunctions)

func mergedFunctions(all ...template.FuncMap) template.FuncMap {
	merged := template.FuncMap{}
	for _, some := range all {
		maps.Copy(merged, some)
	}
	return merged
}

//nolint:gosec // The style sheets are part of the program.
func style(name string) template.HTML { return template.HTML(asset.Style(name)) }

// fullTime is how a time is written out; times are in UTC.
const fullTime = "2 Jan 2006, 15:04:05 UTC"

// timeOf takes the time out of what the API's answers hold. It is zero when
// there is none.
func timeOf(value any) (time.Time, error) {
	switch v := value.(type) {
	case time.Time:
		return v, nil
	case gen.OptDateTime:
		if !v.Set {
			return time.Time{}, nil
		}
		return v.Value, nil
	default:
		return time.Time{}, errors.Errorf("%T is no time", value)
	}
}

// ago is the time as people say it. No time at all is "never".
func ago(value any) (template.HTML, error) {
	t, err := timeOf(value)
	return timeElement(t, relative(t, time.Now())), err
}

// when is the time as the clock has it. No time at all is "never".
func when(value any) (template.HTML, error) {
	t, err := timeOf(value)
	return timeElement(t, t.UTC().Format(fullTime)), err
}

// timeElement is HTML of a time's own digits and fixed words, nothing else.
func timeElement(t time.Time, text string) template.HTML {
	if t.IsZero() {
		return "never"
	}
	t = t.UTC()
	//nolint:gosec // No text from elsewhere is in it.
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" title="` + t.Format(fullTime) + `">` + text + `</time>`)
}

// relative is the time as seen from now, in the largest unit that fits.
func relative(t, now time.Time) string {
	d := now.Sub(t)
	before, after := "", " ago"
	if d < 0 {
		d, before, after = -d, "in ", ""
	}
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return "now"
	case d < time.Minute:
		return before + strconv.Itoa(int(d/time.Second)) + " seconds" + after
	case d < time.Hour:
		return before + several(int(d/time.Minute), "minute") + after
	case d < day:
		return before + several(int(d/time.Hour), "hour") + after
	case d < 30*day:
		return before + several(int(d/day), "day") + after
	default:
		return t.UTC().Format("2 Jan 2006")
	}
}

func several(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// number takes a whole number of any width out of a template's value.
func number(value any) (int64, error) {
	switch v := value.(type) {
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return int64(v), nil
	case gen.OptInt:
		return int64(v.Value), nil
	case gen.OptInt64:
		return v.Value, nil
	default:
		return 0, errors.Errorf("%T is no number", value)
	}
}

func byteCount(value any) (string, error) {
	n, err := number(value)
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B", err
	}
	return scaled(n, " kB", " MB", " GB", " TB"), err
}

func tokens(value any) (string, error) {
	n, err := number(value)
	if n < 1000 {
		return strconv.FormatInt(n, 10), err
	}
	return scaled(n, "k", "M", "G", "T"), err
}

// scaled writes n, which is 1000 or more, in the largest of these units, each
// 1000 of the one before.
func scaled(n int64, units ...string) string {
	x := float64(n) / 1000
	for x >= 999.95 && len(units) > 1 {
		x, units = x/1000, units[1:]
	}
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0") + units[0]
}

func count(value any) (string, error) {
	n, err := number(value)
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits, err
}

// money shows cents of what is a dollar or more, and what is less to a
// hundredth of a cent.
func money(value any) (string, error) {
	n, err := number(value)
	dollars := float64(n) / 1e6
	if n == 0 || n >= 1e6 {
		return fmt.Sprintf("$%.2f", dollars), err
	}
	if n > 0 && n < 100 {
		return "< $0.0001", err
	}
	return fmt.Sprintf("$%.4f", dollars), err
}

func seconds(value any) (string, error) {
	d, ok := value.(time.Duration)
	if !ok {
		n, err := number(value)
		if err != nil {
			return "", err
		}
		d = time.Duration(n) * time.Second
	}
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms", nil
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s", nil
	}
	text := ""
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, " d"}, {time.Hour, " h"}, {time.Minute, " min"}, {time.Second, " s"}} {
		if n := d / unit.size; n > 0 {
			text += " " + strconv.FormatInt(int64(n), 10) + unit.name
			d -= n * unit.size
		}
	}
	return strings.TrimSpace(text), nil
}

func short(id uuid.UUID) string { return id.String()[:8] }

// dict makes a map of names and values, for parts that need several.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict needs pairs of a name and a value")
	}
	values := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		name, ok := pair[0].(string)
		if !ok {
			return nil, errors.Errorf("dict needs names that are strings, not %T", pair[0])
		}
		values[name] = pair[1]
	}
	return values, nil
}

func join(separator string, list any) (string, error) {
	switch v := list.(type) {
	case []string:
		return strings.Join(v, separator), nil
	case gen.Models:
		return strings.Join(v, separator), nil
	case gen.Scopes:
		texts := make([]string, len(v))
		for i, scope := range v {
			texts[i] = string(scope)
		}
		return strings.Join(texts, separator), nil
	default:
		return "", errors.Errorf("%T is no list of texts", list)
	}
}

// initials are one or two letters that stand for a name or email address.
func initials(name string) string {
	name, _, _ = strings.Cut(name, "@")
	letters := ""
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if utf8.RuneCountInString(letters) == 2 {
			break
		}
		first, _ := utf8.DecodeRuneInString(word)
		letters += string(unicode.ToUpper(first))
	}
	return letters
}

func statusClass(status gen.Status) string { return "is-" + string(status) }

func statusText(status gen.Status) string { return strings.ReplaceAll(string(status), "_", " ") }
