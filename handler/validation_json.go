package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/go-faster/jx"
)

// jsonBlanks is the whitespace of JSON.
const jsonBlanks = " \t\r\n"

const (
	// maxEcho is the longest value that is sent back, as JSON, in bytes: nobody
	// wants the base64 of a file repeated.
	maxEcho = 16 << 10
	// maxEchoDepth is the deepest value that is sent back. Parsers that recurse
	// give up soon above it, and would lose the whole answer.
	maxEchoDepth = 900
)

// jsonFault returns where and why body is not JSON text in UTF-8, or "". Its
// time is linear, and its depth bounded, whatever the body is.
func jsonFault(body []byte) (at int, fault string) {
	if !utf8.Valid(body) {
		for body := body; ; {
			r, size := utf8.DecodeRune(body[at:])
			if r == utf8.RuneError && size == 1 {
				return at, fmt.Sprintf("invalid UTF-8: byte 0x%02x", body[at])
			}
			at += size
		}
	}
	var text json.RawMessage
	err := json.Unmarshal(body, &text)
	if err == nil {
		return 0, ""
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// The offset counts the bytes read, the faulty one included.
		at = max(0, int(syntax.Offset)-1)
	}
	return at, err.Error()
}

// eachMember calls visit for the members of an object in their order, twice for
// a name given twice. The text is known to be JSON, and name is valid only
// during the call.
func eachMember(object jx.Raw, visit func(name []byte, value jx.Raw)) {
	_ = jx.DecodeBytes(object).ObjBytes(func(d *jx.Decoder, name []byte) error {
		value, err := d.Raw()
		if err == nil {
			visit(name, value)
		}
		return err
	})
}

// eachItem calls visit for the items of an array, which is known to be JSON.
func eachItem(array jx.Raw, visit func(value jx.Raw)) {
	_ = jx.DecodeBytes(array).Arr(func(d *jx.Decoder) error {
		value, err := d.Raw()
		if err == nil {
			visit(value)
		}
		return err
	})
}

// loneSurrogate reports whether a string, given as its JSON, holds half of a
// surrogate pair, which is no character.
func loneSurrogate(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return false
		}
		text = text[at:]
		unit, ok := escapedUnit(text)
		if !ok {
			text = text[2:]
			continue
		}
		text = text[6:]
		if !utf16.IsSurrogate(unit) {
			continue
		}
		second, _ := escapedUnit(text)
		if utf16.DecodeRune(unit, second) == utf8.RuneError {
			return true
		}
		text = text[6:]
	}
}

// escapedUnit returns the UTF-16 unit of the \uXXXX that text begins with.
func escapedUnit(text []byte) (rune, bool) {
	const length = 6
	if len(text) < length || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:length]), 16, 16)
	return rune(unit), err == nil
}

// errNoEcho says that a value is too long or too deep to be sent back.
var errNoEcho = errors.New("not sent back")

// echo returns a value as it is sent back: without blanks, and with U+FFFD for
// what is no character, so that every client can read it. It returns nil for
// what is left out.
func echo(value jx.Raw) json.RawMessage {
	var e jx.Encoder
	if err := copyValue(&e, jx.DecodeBytes(value), 0); err != nil {
		return nil
	}
	return json.RawMessage(e.Bytes())
}

// echoText returns a text as a JSON string, or nil for what is left out: also
// what is not UTF-8, because no string can show it.
func echoText(text []byte) json.RawMessage {
	if len(text) > maxEcho || !utf8.Valid(text) {
		return nil
	}
	var e jx.Encoder
	e.ByteStr(text)
	if len(e.Bytes()) > maxEcho {
		return nil
	}
	return json.RawMessage(e.Bytes())
}

// copyValue copies the next value of d, and stops as soon as the copy is too
// long or the value too deep.
func copyValue(e *jx.Encoder, d *jx.Decoder, depth int) error {
	if depth > maxEchoDepth {
		return errNoEcho
	}
	var err error
	switch d.Next() {
	case jx.Object:
		e.ObjStart()
		err = d.Obj(func(d *jx.Decoder, name string) error {
			e.FieldStart(name)
			return copyValue(e, d, depth+1)
		})
		e.ObjEnd()
	case jx.Array:
		e.ArrStart()
		err = d.Arr(func(d *jx.Decoder) error { return copyValue(e, d, depth+1) })
		e.ArrEnd()
	case jx.String:
		var text []byte
		text, err = d.StrBytes()
		e.ByteStr(text)
	default:
		var text jx.Raw
		text, err = d.Raw()
		e.Raw(text)
	}
	if err == nil && len(e.Bytes()) > maxEcho {
		err = errNoEcho
	}
	return err
}
