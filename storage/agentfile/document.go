package agentfile

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/go-faster/yaml"
)

// byteOrderMark is what some editors begin a UTF-8 file with.
const byteOrderMark = "\ufeff"

// document returns the mapping at the root of the file, nil after a fault.
func (p *parser) document(source string) *yaml.Node {
	if len(source) > MaxSize {
		p.faultAt(0, "", "the file is longer than %d bytes", MaxSize)
		return nil
	}
	if !utf8.ValidString(source) {
		p.faultAt(lineOf(source, len(validPrefix(source))), "", "the file is not UTF-8 text")
		return nil
	}
	text := strings.TrimPrefix(source, byteOrderMark)
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF), err == nil && doc.Content[0].ShortTag() == "!!null":
		p.faultAt(0, "", "the file is empty")
		return nil
	case err != nil:
		p.syntaxFault(text, err)
		return nil
	}
	// Whatever follows the document is a fault, also what is no YAML.
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		p.syntaxFault(text, err)
		return nil
	default:
		p.fault(&next, "", "a second document begins here; a file has one agent")
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		p.fault(root, "", "want fields such as `name:`, have %s", describe(root))
		return nil
	}
	return root
}

// syntaxFault tells what the YAML library could not read.
func (p *parser) syntaxFault(text string, err error) {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		p.faultAt(0, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	at := syntax.Offset
	// The library's own line is often that of the construct around the fault,
	// so it counts only when there is no offset. The offset counts characters,
	// except where the bytes could not be made into characters.
	if at == 0 && syntax.Line > 0 {
		p.faultAt(syntax.Line, "", "%s", syntax.Msg)
		return
	}
	if syntax.Msg != "control characters are not allowed" {
		at = byteOffset(text, at)
	}
	at = min(at, len(text))
	switch {
	case syntax.Msg == "could not find expected ':'":
		// It shows only where the next line begins.
		p.faultAt(lineOf(text, len(strings.TrimRight(text[:at], " \r\n"))), "", "%s", syntax.Msg)
	case strings.HasPrefix(text[at:], "\t"):
		p.faultAt(lineOf(text, at), "", "a tab, where YAML wants blanks")
	case text[at:] != "" && strings.ContainsRune("@`%", rune(text[at])) && strings.Contains(syntax.Msg, "cannot start"):
		p.faultAt(lineOf(text, at), "", "a text that begins with %q has to be in quotes", text[at])
	default:
		p.faultAt(lineOf(text, at), "", "%s", syntax.Msg)
	}
}

// byteOffset returns where the nth character of text begins.
func byteOffset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// lineOf returns the line of an offset, from 1. What is missing at the end of
// the text is missing in its last line.
func lineOf(text string, at int) int {
	if last := strings.TrimRight(text, "\r\n"); at > len(last) {
		at = len(last)
	}
	return 1 + strings.Count(text[:at], "\n")
}

// validPrefix returns text up to its first byte that is not UTF-8.
func validPrefix(text string) string {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return text[:i]
			}
		}
	}
	return text
}
