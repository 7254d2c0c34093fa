package tool

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxGlob is how long a pattern may be. Matching takes time in proportion to it.
const maxGlob = 200

// glob is a pattern of paths: * and ? within a name, ** across names, [a-z] and
// {a,b}. One without a slash is of names, wherever they are. It is a regular
// expression because that takes linear time, whatever the pattern.
type glob struct{ whole *regexp.Regexp }

// parseGlob reads a pattern, if it is one; an empty one matches everything.
func parseGlob(pattern string) (glob, bool) {
	if pattern == "" {
		return glob{}, true
	}
	if len(pattern) > maxGlob {
		return glob{}, false
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	var expr strings.Builder
	expr.WriteString(`(?s)\A(?:`)
	depth := 0
	for rest := pattern; rest != ""; {
		rest = rest[translate(&expr, rest, &depth):]
	}
	expr.WriteString(`)\z`)
	whole, err := regexp.Compile(expr.String())
	return glob{whole}, err == nil
}

// translate writes the first element of a pattern as a regular expression, and
// returns its length.
func translate(expr *strings.Builder, rest string, depth *int) int {
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "**/"):
		expr.WriteString(`(?:.*/)?`)
		return len("**/")
	case strings.HasPrefix(rest, "**"):
		expr.WriteString(`.*`)
		return len("**")
	case c == '*':
		expr.WriteString(`[^/]*`)
	case c == '?':
		expr.WriteString(`[^/]`)
	case c == '[':
		if end := strings.IndexByte(rest[1:], ']'); end > 0 {
			set := strings.ReplaceAll(rest[1:end+1], `\`, `\\`)
			set = strings.ReplaceAll(set, "[", `\[`)
			if set[0] == '!' || set[0] == '^' {
				set = "^/" + set[1:]
			}
			expr.WriteString("[" + set + "]")
			return end + 2
		}
		expr.WriteString(`\[`)
	case c == '{':
		*depth++
		expr.WriteString(`(?:`)
	case c == '}' && *depth > 0:
		*depth--
		expr.WriteString(`)`)
	case c == ',' && *depth > 0:
		expr.WriteString(`|`)
	case c == '\\' && len(rest) > 1:
		_, size := utf8.DecodeRuneInString(rest[1:])
		expr.WriteString(regexp.QuoteMeta(rest[1 : 1+size]))
		return 1 + size
	default:
		// Byte by byte would take characters apart.
		end := strings.IndexAny(rest[1:], `*?[{},\`)
		if end < 0 {
			end = len(rest) - 1
		}
		expr.WriteString(regexp.QuoteMeta(rest[:end+1]))
		return end + 1
	}
	return 1
}

// match says whether the pattern matches a path, which it does as a whole.
func (g glob) match(path string) bool { return g.whole == nil || g.whole.MatchString(path) }
