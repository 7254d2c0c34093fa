package agentfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-faster/yaml"
)

// splice changes the lines of one field of a mapping and no others. It is not ok
// when the mapping is not written with a field a line. What it returns need not
// mean what was wanted, for YAML has more ways to write things than it looks at.
func splice(source string, root, mapping *yaml.Node, name string, value *yaml.Node, order []string) (edited string, ok bool) {
	mark := ""
	if strings.HasPrefix(source, byteOrderMark) {
		mark, source = byteOrderMark, strings.TrimPrefix(source, byteOrderMark)
	}
	lines := slices.Collect(strings.Lines(source))
	if len(mapping.Content) == 0 && mapping == root && mapping.Line == 0 { // Only comments, if anything.
		entry, ok := entryLines(name, value, "")
		return mark + replaceLines(lines, len(lines), len(lines), entry), ok
	}
	if mapping.Style&yaml.FlowStyle != 0 || len(mapping.Content) == 0 {
		return "", false
	}
	indent, ok := indentOf(lines, mapping)
	if !ok {
		return "", false
	}
	from, to := spanOf(lines, root, mapping, name, order)
	if from > to || to > len(lines) {
		return "", false
	}
	var entry []string
	if value != nil {
		key, old := keyOf(mapping, name), lookup(mapping, name)
		shown := asBefore(value, old)
		note, column := "", 0
		if key != nil {
			if note, column = comment(lines[from], key, old); note != "" {
				shown.LineComment = "" // It is put back at its column.
			}
		}
		if entry, ok = entryLines(name, &shown, indent); !ok {
			return "", false
		}
		entry[0] = withComment(entry[0], note, column)
	}
	return mark + replaceLines(lines, from, to, entry), true
}

// indentOf returns what stands before the fields of a mapping. It is not ok when
// a field does not begin its line.
func indentOf(lines []string, mapping *yaml.Node) (indent string, ok bool) {
	indent = strings.Repeat(" ", mapping.Content[0].Column-1)
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if key.Line > len(lines) || key.Column != len(indent)+1 || !strings.HasPrefix(lines[key.Line-1], indent) {
			return "", false
		}
	}
	return indent, true
}

// spanOf returns the lines that are to be replaced: those of the field, or none
// at the place where it goes.
func spanOf(lines []string, root, mapping *yaml.Node, name string, order []string) (from, to int) {
	key := keyOf(mapping, name)
	if key == nil {
		at := place(mapping, name, order)
		if at == 0 {
			first := mapping.Content[0].Line - 1
			return first, first
		}
		_, end := fieldLines(lines, root, mapping, at-2)
		return end, end
	}
	return fieldLines(lines, root, mapping, slices.Index(mapping.Content, key))
}

// fieldLines returns the lines of the field whose key is the node at an index:
// from that of the key to that before the next key, without the comments and
// blank lines above that one.
func fieldLines(lines []string, root, mapping *yaml.Node, at int) (from, to int) {
	key := mapping.Content[at]
	from, to = key.Line-1, len(lines)
	switch next := at + 2; {
	case next < len(mapping.Content):
		to = mapping.Content[next].Line - 1
	case mapping != root:
		_, to = fieldLines(lines, root, root, slices.Index(root.Content, mapping)-1)
	}
	for to > from+1 && between(lines[to-1], key.Column) {
		to--
	}
	return from, to
}

// between reports whether a line is blank, a comment no further in than a column,
// or the end of the document.
func between(line string, column int) bool {
	text := strings.TrimSpace(line)
	in := len(line) - len(strings.TrimLeft(line, " "))
	return text == "" || text == "..." || text[0] == '#' && in < column
}

// entryLines writes a field with its value.
func entryLines(name string, value *yaml.Node, indent string) (lines []string, ok bool) {
	only := &yaml.Node{Kind: yaml.MappingNode}
	put(only, name, value, []string{name})
	text, err := encode(only)
	if err != nil {
		return nil, false
	}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			line = indent + line
		}
		lines = append(lines, line)
	}
	return lines, true
}

// asBefore returns a value in the style of the one that it replaces, if any: a
// list with an item a line stays one.
func asBefore(value, old *yaml.Node) yaml.Node {
	shown := *value
	if old != nil && old.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode && len(value.Content) > 0 {
		shown.Style &= old.Style | ^yaml.FlowStyle
	}
	return shown
}

// blockHeader is the beginning of a text in lines of its own, with a comment.
var blockHeader = regexp.MustCompile(`:\s+[|>][-+0-9]*\s+(#.*)$`)

// comment returns the comment at the end of a field's first line.
func comment(line string, key, value *yaml.Node) (text string, column int) {
	line = strings.TrimRight(line, "\r\n ")
	if found := blockHeader.FindStringSubmatchIndex(line); found != nil && value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return line[found[2]:], found[2]
	}
	for _, c := range []string{value.LineComment, key.LineComment} {
		if c != "" && strings.HasSuffix(line, c) {
			return c, len(line) - len(c)
		}
	}
	return "", 0
}

// withComment puts a comment behind a line, at a column if that is free.
func withComment(line, text string, column int) string {
	if text == "" {
		return line
	}
	line = strings.TrimRight(line, "\n")
	return line + strings.Repeat(" ", max(1, column-len(line))) + text + "\n"
}

// replaceLines puts new lines, which end with \n, in the place of others, with the
// line ends of the file.
func replaceLines(lines []string, from, to int, entry []string) string {
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		for i, line := range entry {
			entry[i] = strings.TrimSuffix(line, "\n") + "\r\n"
		}
	}
	if from > 0 && len(entry) > 0 && !strings.HasSuffix(lines[from-1], "\n") {
		lines[from-1] += "\n"
	}
	return strings.Join(slices.Replace(lines, from, to, entry...), "")
}
