package agentfile

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/go-faster/yaml"
)

// Change is a new value for one field of an agent file.
type Change struct {
	// Field is a field of the file, such as model, or of its limits, such as
	// limits.turn.
	Field string
	// Value is a string, []string, int, int64, float64 or bool; nil removes the field.
	Value any
}

// The order in which new fields are put into a file.
var (
	fieldOrder = []string{
		"name", "command", "model", "instructions", "tools", "mcp", "env", "restart", "gateway",
		"network", "secrets", "read", "limits",
	}
	limitOrder = []string{
		"turn", "steps", "tokens", "cost", "memory", "processes", "open_files", "file_size", "workspace", "output",
	}
)

// Edit changes fields of an agent file one after the other. The lines of other
// fields stay as they are, with their comments, and a file in which every value
// is there already comes back as it is. A file without fields gets them. The
// result may have faults that Parse tells. The error is an *Error when the file
// is no YAML with fields, or when its anchors do not let the field be changed;
// any other error says that a change is none.
func Edit(source string, changes []Change) (string, error) {
	for _, c := range changes {
		value, err := nodeOf(c.Value)
		if err != nil {
			return "", errors.Wrapf(err, "field %s", c.Field)
		}
		top, limit, inLimits := strings.Cut(c.Field, ".")
		switch {
		case inLimits && top == "limits" && slices.Contains(limitOrder, limit):
			source, err = editLimit(source, limit, value)
		case !inLimits && slices.Contains(fieldOrder, top):
			source, err = editField(source, top, value)
		default:
			err = errors.Errorf("no field %s", c.Field)
		}
		if err != nil {
			return "", err
		}
	}
	return source, nil
}

// nodeOf makes a node of a value, nil of nil.
func nodeOf(value any) (*yaml.Node, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil //nolint:nilnil // No value, and no error.
	case string:
		return textNode(v)
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, text := range v {
			item, err := textNode(text)
			if err != nil {
				return nil, err
			}
			if item.Style == yaml.LiteralStyle {
				list.Style = 0
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(v)}, nil
	case int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatInt(v, 10)}, nil
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(v, 'f', -1, 64)}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(v)}, nil
	default:
		return nil, errors.Errorf("a value of type %T", value)
	}
}

func textNode(text string) (*yaml.Node, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8")
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case strings.HasSuffix(text, "\n\n"):
		// In lines of its own it would take in the blank lines that follow.
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(text, "\n"):
		n.Style = yaml.LiteralStyle
	}
	return n, nil
}

// readForEdit returns the fields of a file, none for one that has only comments.
func readForEdit(source string) (*yaml.Node, error) {
	var first yaml.Node
	if len(source) <= MaxSize && yaml.Unmarshal([]byte(source), &first) == nil && first.Kind == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	p := &parser{}
	root := p.document(source)
	if root == nil {
		return nil, &Error{Faults: p.faults}
	}
	return root, nil
}

// editField gives a field of the file a value, or removes it.
func editField(source, name string, value *yaml.Node) (string, error) {
	root, err := readForEdit(source)
	if err != nil {
		return "", err
	}
	old := lookup(root, name)
	if old == nil && value == nil || old != nil && value != nil && sameValue(resolve(old), value) {
		return source, nil
	}
	return rewrite(source, root, root, name, value, fieldOrder)
}

// editLimit gives a limit a value, or removes it, and `limits` with the last one.
func editLimit(source, name string, value *yaml.Node) (string, error) {
	root, err := readForEdit(source)
	if err != nil {
		return "", err
	}
	limits := lookup(root, "limits")
	if limits == nil || limits.Kind == yaml.ScalarNode {
		if value == nil {
			return source, nil
		}
		only := &yaml.Node{Kind: yaml.MappingNode}
		put(only, name, value, limitOrder)
		return rewrite(source, root, root, "limits", only, fieldOrder)
	}
	if limits.Kind != yaml.MappingNode {
		return "", &Error{Faults: []Fault{{Line: limits.Line, Field: "limits", Problem: "want fields, have " + describe(resolve(limits))}}}
	}
	old := lookup(limits, name)
	switch {
	case old == nil && value == nil, old != nil && value != nil && sameValue(resolve(old), value):
		return source, nil
	case value == nil && len(limits.Content) == 2: // The last one.
		return rewrite(source, root, root, "limits", nil, fieldOrder)
	case limits.Style&yaml.FlowStyle == 0:
		return rewrite(source, root, limits, name, value, limitOrder)
	default:
		flow := *limits
		flow.Content = slices.Clone(limits.Content)
		put(&flow, name, value, limitOrder)
		return rewrite(source, root, root, "limits", &flow, fieldOrder)
	}
}

// rewrite changes one field of a mapping of the file. It changes the field's own
// lines if the file still means the same then, and else writes the file anew.
func rewrite(source string, root, mapping *yaml.Node, name string, value *yaml.Node, order []string) (string, error) {
	edited, spliced := splice(source, root, mapping, name, value, order)
	line, path := mapping.Line, name
	if mapping != root {
		path = join("limits", name)
	}
	if key := keyOf(mapping, name); key != nil {
		line = key.Line
	}
	put(mapping, name, value, order)
	if spliced && means(edited, root) {
		return edited, nil
	}
	anew, err := encode(root)
	if err == nil && means(anew, root) {
		return anew, nil
	}
	return "", &Error{Faults: []Fault{{
		Line: line, Field: path, Problem: "cannot be changed by itself, perhaps because of an anchor; change the file's text",
	}}}
}

// means reports whether a source has the fields of root.
func means(source string, root *yaml.Node) bool {
	got, err := readForEdit(source)
	return err == nil && sameValue(got, root)
}

// sameValue reports whether two nodes say the same, however they are written.
func sameValue(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.ScalarNode:
		return a.ShortTag() == b.ShortTag() && a.Value == b.Value || sameNumber(a, b)
	case yaml.AliasNode:
		return a.Value == b.Value
	}
	for i := range a.Content {
		if !sameValue(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

func sameNumber(a, b *yaml.Node) bool {
	numbers := []string{"!!int", "!!float"}
	if !slices.Contains(numbers, a.ShortTag()) || !slices.Contains(numbers, b.ShortTag()) {
		return false
	}
	x, errX := strconv.ParseFloat(a.Value, 64)
	y, errY := strconv.ParseFloat(b.Value, 64)
	return errX == nil && errY == nil && x == y
}

// keyOf returns the key of a field, nil when the mapping has no such field.
func keyOf(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(mapping.Content); i += 2 {
		if key := mapping.Content[i]; key.Kind == yaml.ScalarNode && key.Value == name {
			return key
		}
	}
	return nil
}

func lookup(mapping *yaml.Node, name string) *yaml.Node {
	key := keyOf(mapping, name)
	if key == nil {
		return nil
	}
	return mapping.Content[slices.Index(mapping.Content, key)+1]
}

// place returns where among the nodes of a mapping a new field goes: behind the
// last of those that come before it.
func place(mapping *yaml.Node, name string, order []string) int {
	at := 0
	for i := 0; i < len(mapping.Content); i += 2 {
		rank := slices.Index(order, mapping.Content[i].Value)
		if rank >= 0 && rank < slices.Index(order, name) {
			at = i + 2
		}
	}
	return at
}

// put changes a field of a mapping's nodes.
func put(mapping *yaml.Node, name string, value *yaml.Node, order []string) {
	key := keyOf(mapping, name)
	at := slices.Index(mapping.Content, key)
	switch {
	case key != nil && value != nil:
		value.LineComment = mapping.Content[at+1].LineComment
		mapping.Content[at+1] = value
	case key != nil:
		mapping.Content = slices.Delete(mapping.Content, at, at+2)
	case value != nil:
		key = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
		mapping.Content = slices.Insert(mapping.Content, place(mapping, name, order), key, value)
	}
}

// encode writes fields as a file.
func encode(root *yaml.Node) (string, error) {
	if len(root.Content) == 0 {
		return "", nil
	}
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return "", err
	}
	if err := enc.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}
