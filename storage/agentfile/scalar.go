package agentfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-faster/yaml"
)

// text reads a string. A number or boolean is refused, because YAML may have
// changed what was meant: 1.10 is no version, no is no word.
func (p *parser) text(at string, n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		p.fault(n, at, "want text, have %s", describe(n))
		return "", false
	}
	return n.Value, true
}

func (p *parser) boolean(at string, n *yaml.Node) bool {
	isTrue, isFalse := strings.EqualFold(n.Value, "true"), strings.EqualFold(n.Value, "false")
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || !isTrue && !isFalse {
		p.fault(n, at, "want true or false, have %s", describe(n))
	}
	return isTrue
}

func (p *parser) count(at string, n *yaml.Node) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < 1 {
		p.fault(n, at, "want a whole number above 0, have %s", describe(n))
		return 0
	}
	return v
}

// dollars reads an amount of US dollars as millionths of one.
func (p *parser) dollars(at string, n *yaml.Node) int64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || err != nil || !(v*1e6 >= 1 && v <= MaxCost) {
		p.fault(n, at, "want US dollars above 0, such as 0.50, have %s", describe(n))
		return 0
	}
	return int64(math.Round(v * 1e6))
}

// countWithin reads a number with bounds.
func (p *parser) countWithin(at string, n *yaml.Node, least, most int) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < least || v > most {
		p.fault(n, at, "want a whole number from %d to %d, have %s", least, most, describe(n))
		return 0
	}
	return v
}

// distinct reads a list of texts of which none may stand twice. check returns
// what the definition has for a text, or what is wrong with it.
func (p *parser) distinct(
	at string, n *yaml.Node, example string, check func(text string) (value, problem string),
) []string {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, at, "want a list such as %s, have %s", example, describe(n))
		return nil
	}
	if !p.enter(n) {
		return nil
	}
	var values []string
	seen := map[string]*yaml.Node{}
	for i, item := range n.Content {
		path := index(at, i)
		text, ok := p.text(path, resolve(item))
		if !ok {
			continue
		}
		switch value, problem := check(text); {
		case problem != "":
			p.fault(item, path, "%s", problem)
		case seen[value] != nil:
			p.fault(item, path, "%s is given twice, first in line %d", inLine(value), seen[value].Line)
		default:
			seen[value] = item
			values = append(values, value)
		}
	}
	return values
}

func (p *parser) duration(at string, n *yaml.Node) Duration {
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		p.fault(n, at, "want a duration such as 90s, 10m or 2h, have %s", describe(n))
	case d <= 0 || d > MaxTurn:
		p.fault(n, at, "want more than 0 and at most %dh, have %s", int(MaxTurn.Hours()), describe(n))
	}
	return Duration(d)
}

// resolve follows an alias to its anchor.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// join makes the path of a field from that of the fields around it.
func join(path, name string) string {
	if path == "" {
		return inLine(name)
	}
	return path + "." + inLine(name)
}

// index makes the path of an item of a list.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// describe says what a node is, for a message of one line.
func describe(n *yaml.Node) string {
	text := shorten(n.Value)
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	case n.ShortTag() == "!!str", strings.ContainsFunc(text, unprintable):
		return strconv.Quote(text)
	default:
		return text
	}
}

// quote writes a text for a message of one line.
func quote(text string) string { return strconv.Quote(shorten(text)) }

// inLine writes a name for a message of one line, in quotes only if it needs
// them.
func inLine(name string) string {
	if name = shorten(name); name == "" || strings.ContainsFunc(name, unprintable) {
		return strconv.Quote(name)
	}
	return name
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func shorten(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// suggest names the known field that a misspelt one probably meant.
func (p *parser) suggest(name string, known map[string]field) string {
	const longest = 20 // Longer than any field with its mistakes.
	if len(name) > longest || len(p.faults) == maxFaults {
		return ""
	}
	best, distance := "", 3
	for k := range known {
		if d := editDistance(strings.ToLower(name), k); d < distance || d == distance && best != "" && k < best {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean `%s`?)", best)
}

// editDistance is the Levenshtein distance of two short words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
