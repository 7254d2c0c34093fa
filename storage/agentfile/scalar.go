package agentfile

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// text reads a string. A number or boolean is refused, because YAML may have
// changed what was meant: 1.10 is no version, no is no word.
func (p *parser) text(at string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		p.fault(n, at, "want text, have %s", describe(n))
		return ""
	}
	return n.Value
}

func (p *parser) texts(at string, n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, at, "want a list of texts, have %s", describe(n))
		return nil
	}
	texts := make([]string, 0, len(n.Content))
	for i, item := range n.Content {
		texts = append(texts, p.text(fmt.Sprintf("%s[%d]", at, i), resolve(item)))
	}
	return texts
}

func (p *parser) boolean(at string, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.fault(n, at, "want true or false, have %s", describe(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

func (p *parser) count(at string, n *yaml.Node) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || v < 1 {
		p.fault(n, at, "want a whole number above 0, have %s", describe(n))
		return 0
	}
	return v
}

// resolve follows an alias to its anchor.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// describe says what a node is, for a message.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!str":
		return strconv.Quote(shorten(n.Value))
	default:
		return shorten(n.Value)
	}
}

func shorten(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// suggest names the known field that a misspelt one probably meant.
func suggest(name string, known map[string]field) string {
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
