package markup_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentrun/web/markup"
)

// nasty are texts of about n bytes that are slow to read, or make much of little.
var nasty = map[string]func(n int) string{
	"brackets":      func(n int) string { return strings.Repeat("[", n) },
	"closing":       func(n int) string { return strings.Repeat("]", n) },
	"balanced":      func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"linksnest":     func(n int) string { return strings.Repeat("[", n/6) + strings.Repeat("](/x)", n/6) },
	"imgnest":       func(n int) string { return strings.Repeat("![", n/7) + strings.Repeat("](/x)", n/7) },
	"imgopen":       func(n int) string { return strings.Repeat("![a", n/3) },
	"bra":           func(n int) string { return strings.Repeat("[a](", n/4) },
	"bralt":         func(n int) string { return strings.Repeat("[a](<b", n/6) },
	"braq":          func(n int) string { return strings.Repeat("[a](b \"", n/7) },
	"parens":        func(n int) string { return "[a](" + strings.Repeat("(", n) },
	"stars":         func(n int) string { return strings.Repeat("*", n) },
	"starsa":        func(n int) string { return strings.Repeat("*a", n/2) },
	"stara_":        func(n int) string { return strings.Repeat("*a_ ", n/4) },
	"stars2":        func(n int) string { return strings.Repeat("**a *b ", n/7) },
	"close":         func(n int) string { return strings.Repeat("a** b* ", n/7) },
	"mix":           func(n int) string { return strings.Repeat("*a_b**c__d~~", n/12) },
	"a**b":          func(n int) string { return "a**b" + strings.Repeat("c* ", n/3) },
	"em nested":     func(n int) string { return strings.Repeat("*a **a ", n/14) + strings.Repeat("b** b* ", n/14) },
	"tildes":        func(n int) string { return strings.Repeat("~~a ", n/4) },
	"tildes1":       func(n int) string { return strings.Repeat("~a ", n/3) },
	"_a":            func(n int) string { return strings.Repeat("_a", n/2) },
	"quotes":        func(n int) string { return strings.Repeat(">", n) },
	"quotes sp":     func(n int) string { return strings.Repeat("> ", n/2) + "a" },
	"quotes+lines":  func(n int) string { return strings.Repeat(">", n/2) + "a\n" + strings.Repeat("a\n", n/4) },
	"quotes+lines>": func(n int) string { return strings.Repeat(">", n/2) + "a\n" + strings.Repeat(">\n", n/4) },
	"quote steps": func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(">", i) + "a\n")
		}
		return b.String()
	},
	"lists":  func(n int) string { return strings.Repeat("- ", n/2) },
	"lists+": func(n int) string { return strings.Repeat("- ", n/2) + "a\n" + strings.Repeat("b\n", n/4) },
	"lists steps": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat("  ", i) + "- a\n")
		}
		return b.String()
	},
	"lists blank": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n/2; i++ {
			b.WriteString(strings.Repeat(" ", i) + "- a\n")
		}
		return b.String() + strings.Repeat("\n", n/2)
	},
	"ol":    func(n int) string { return strings.Repeat("1. ", n/3) },
	"1)":    func(n int) string { return strings.Repeat("1)\n", n/3) },
	"ticks": func(n int) string { return strings.Repeat("`", n) },
	"ticks steps": func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString(strings.Repeat("`", i) + " ")
		}
		return b.String()
	},
	"ticks steps e": func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString("e" + strings.Repeat("`", i))
		}
		return b.String()
	},
	"tick a":     func(n int) string { return "`" + strings.Repeat("a``", n/3) },
	"fences":     func(n int) string { return strings.Repeat("```\n", n/4) },
	"fences q":   func(n int) string { return strings.Repeat("> ```\n", n/6) },
	"lt":         func(n int) string { return strings.Repeat("<", n) },
	"lta":        func(n int) string { return strings.Repeat("<a", n/2) },
	"lthttp":     func(n int) string { return strings.Repeat("<http:", n/6) },
	"ltat":       func(n int) string { return strings.Repeat("<a@", n/3) },
	"lt!":        func(n int) string { return strings.Repeat("<!--", n/4) },
	"lt?":        func(n int) string { return strings.Repeat("<?", n/2) },
	"http":       func(n int) string { return strings.Repeat("http://a", n/8) },
	"http sp":    func(n int) string { return strings.Repeat("http://a.b ", n/11) },
	"http()":     func(n int) string { return "http://a.b/" + strings.Repeat("(", n/2) + strings.Repeat(")", n/2) },
	"http;":      func(n int) string { return "http://a.b/" + strings.Repeat("&a;", n/3) },
	"http)":      func(n int) string { return strings.Repeat("http://a.b/)", n/12) },
	"http_":      func(n int) string { return strings.Repeat("*http://a.b/", n/12) },
	"www":        func(n int) string { return strings.Repeat("www.", n/4) },
	"(www":       func(n int) string { return strings.Repeat("(www.a.b", n/8) },
	"mail":       func(n int) string { return strings.Repeat("a@", n/2) },
	"mail.":      func(n int) string { return "a@" + strings.Repeat("a.", n/2) },
	"mail+":      func(n int) string { return strings.Repeat("a+.", n/3) },
	"mail sp":    func(n int) string { return strings.Repeat("a@b ", n/4) },
	"mail paren": func(n int) string { return strings.Repeat("(a", n/2) },
	"mail*":      func(n int) string { return strings.Repeat("*a.", n/3) },
	"mail_":      func(n int) string { return strings.Repeat("_a.", n/3) },
	"entities":   func(n int) string { return strings.Repeat("&", n) },
	"entities2":  func(n int) string { return strings.Repeat("&#x", n/3) },
	"entities3":  func(n int) string { return strings.Repeat("&quot;", n/6) },
	"backslash":  func(n int) string { return strings.Repeat("\\", n) },
	"backslash[": func(n int) string { return strings.Repeat("\\[", n/2) },
	"refs": func(n int) string {
		return "[a]: http://x.y/" + strings.Repeat("u", n/2) + "\n\n" + strings.Repeat("[a]", n/6)
	},
	"refdefs": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "[%d]: x\n", i)
		}
		return b.String()
	},
	"refdefs same":  func(n int) string { return strings.Repeat("[a]: x\n", n/7) },
	"refdefs open":  func(n int) string { return strings.Repeat("[a]: x \"\n", n/9) },
	"refdefs open2": func(n int) string { return strings.Repeat("[a\n", n/3) },
	"refdefs lt":    func(n int) string { return strings.Repeat("[a]: <\n", n/7) },
	"reflabel":      func(n int) string { return strings.Repeat("[a][", n/4) },
	"reflong":       func(n int) string { return "[" + strings.Repeat("a", n/2) + "]: x\n\n" + strings.Repeat("[a", n/4) },
	"reflabels":     func(n int) string { return "[a]: x\n\n" + strings.Repeat("[a [a] ", n/7) },
	"table": func(n int) string {
		c := n / 8
		return strings.Repeat("|a", c) + "\n" + strings.Repeat("|-", c) + "\n" + strings.Repeat("|\n", n/4)
	},
	"table esc":     func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|`\\|`|\n", n/7) },
	"table esc2":    func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|`\\|` `\\|`\n", n/11) },
	"table esc3":    func(n int) string { return "|a|\n|-|\n|" + strings.Repeat("`\\|`", n/4) },
	"tables":        func(n int) string { return strings.Repeat("|a|\n|-|\n\n", n/9) },
	"table delims":  func(n int) string { return strings.Repeat("|-|-|\n", n/6) },
	"table delims2": func(n int) string { return "a\n" + strings.Repeat("-|:::\n", n/6) },
	"tables small": func(n int) string {
		return strings.Repeat(strings.Repeat("|", 16)+"\n"+strings.Repeat("-|", 16)+"\n"+strings.Repeat("|\n", 16)+"\n", n/85)
	},
	"tabs":              func(n int) string { return strings.Repeat("\t", n) },
	"tabs-":             func(n int) string { return strings.Repeat("-\t", n/2) },
	"> tab":             func(n int) string { return strings.Repeat(">\t", n/2) },
	"lines":             func(n int) string { return strings.Repeat("\n", n) },
	"spaces":            func(n int) string { return strings.Repeat(" ", n) },
	"a spaces":          func(n int) string { return "a" + strings.Repeat(" ", n) + "a" },
	"a":                 func(n int) string { return strings.Repeat("a\n", n/2) },
	"setext":            func(n int) string { return strings.Repeat("a\n=\n", n/4) },
	"setext-":           func(n int) string { return strings.Repeat("a\n-\n", n/4) },
	"hashes":            func(n int) string { return strings.Repeat("#", n) },
	"hash sp":           func(n int) string { return "# " + strings.Repeat("# ", n/2) },
	"hash lines":        func(n int) string { return strings.Repeat("# a {#b}\n", n/9) },
	"hr":                func(n int) string { return strings.Repeat("* ", n/2) },
	"hr_":               func(n int) string { return strings.Repeat("_ ", n/2) + "a" },
	"hr- lines":         func(n int) string { return strings.Repeat("---\n", n/4) },
	"code indent":       func(n int) string { return strings.Repeat("    a\n", n/6) },
	"code indent blank": func(n int) string { return "    a\n" + strings.Repeat("\n", n) + "    a" },
	"list fence":        func(n int) string { return strings.Repeat("- ```\n", n/6) },
	"quote list":        func(n int) string { return strings.Repeat("> - ", n/4) },
	"quote list lines":  func(n int) string { return strings.Repeat(strings.Repeat("> - ", 100)+"a\n", n/400) },
	"deep quote lines":  func(n int) string { return strings.Repeat(strings.Repeat(">", 500)+"a\n", n/500) },
	"task":              func(n int) string { return strings.Repeat("- [x] \n", n/7) },
	"esc]":              func(n int) string { return strings.Repeat("\x1b]", n/2) },
	"esc[":              func(n int) string { return strings.Repeat("\x1b[", n/2) },
	"esc]8":             func(n int) string { return strings.Repeat("\u009da", n/3) },
	"cr":                func(n int) string { return strings.Repeat("\r", n) },
	"cr a":              func(n int) string { return strings.Repeat("\ra", n/2) },
	"bidi":              func(n int) string { return strings.Repeat("\u202e", n/3) },
	"ff":                func(n int) string { return strings.Repeat("\xff", n) },
}

// slowest is what one text may take: a small part of it on an idle machine.
const slowest = 2 * time.Second

// slowdown is how much longer than a plain text of the same size one may take,
// where the machine is busy or the race detector looks on. Without the bounds
// many take a thousand times as long.
const slowdown = 400

// ratio bounds the HTML of a text: tags around few characters, entities, links.
const ratio = 64

func TestNastyTextsTakeLittle(t *testing.T) {
	start := time.Now()
	markup.Markdown(strings.Repeat("Some *plain* words.\n\n", markup.MaxMarkdown/22))
	most := max(slowest, slowdown*time.Since(start))
	for name, text := range nasty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := text(markup.MaxMarkdown)
			whole = whole[:min(len(whole), markup.MaxMarkdown)]
			measure(t, most, "at the bound", whole)
			measure(t, most, "1 MiB", text(1<<20))
			if os.Getenv("AGENTRUN_TEST") != "full" {
				return
			}
			// The bounds of one paragraph do not bound many.
			part := text(4000)
			part = part[:min(len(part), 4000)] + "\n\n"
			measure(t, most, "in paragraphs", strings.Repeat(part, markup.MaxMarkdown/len(part)))
		})
	}
}

func measure(t *testing.T, most time.Duration, what, text string) {
	t.Helper()
	start := time.Now()
	page := markup.Markdown(text)
	if took := time.Since(start); took > most {
		t.Errorf("%s: %d bytes took %v", what, len(text), took)
	}
	if len(page) > ratio*len(text)+1000 {
		t.Errorf("%s: %d bytes became %d", what, len(text), len(page))
	}
}
