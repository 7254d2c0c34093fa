package handler

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"agentrun/gen"
)

// hiddenIssues returns what is wrong with a body that the generated decoder
// accepted as req. That decoder replaces what is no Unicode, and reads more
// spellings of a UUID than the contract means. For an ordinary body this costs
// a few fast passes over its bytes; only an unusual one is looked at closely.
func hiddenIssues(raw []byte, req *gen.PublicCreateAgentRequest) []issue {
	if utf8.Valid(raw) && !holdsReplacement(req) && plainTemplateID(raw) {
		return nil
	}
	return bodyIssues(jsonType, raw)
}

// holdsReplacement reports whether any text of req may have been replaced.
func holdsReplacement(req *gen.PublicCreateAgentRequest) bool {
	const replacement = string(utf8.RuneError)
	if strings.Contains(req.Name, replacement) || strings.Contains(req.InputText.Value, replacement) {
		return true
	}
	for _, f := range req.Files {
		if strings.Contains(f.Filename, replacement) || strings.Contains(f.ContentBase64, replacement) {
			return true
		}
	}
	return false
}

// plainTemplateID reports whether the template_id of a body that was decoded
// stands in it once, unescaped, as an accepted UUID. False means only that a
// closer look is needed.
//
// The decoder found the field, so that the field's name stands in the body
// either escaped or as it is. When no escape can be a part of the name and the
// name stands there once, that place is the field: neither a value, nor a field
// of another object, nor a second field of the same name can be meant.
func plainTemplateID(raw []byte) bool {
	const name = `"template_id"`
	if escapesName(raw) {
		return false
	}
	at := bytes.Index(raw, []byte(name))
	if at < 0 {
		return false
	}
	rest := raw[at+len(name):]
	if bytes.Contains(rest, []byte(name)) {
		return false
	}
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(rest, jsonBlanks), []byte(":"))
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, jsonBlanks), []byte(`"`))
	if !ok {
		return false
	}
	end := bytes.IndexByte(rest, '"')
	return end >= 0 && acceptedUUID(rest[:end])
}

// escapesName reports whether raw holds an escape that can stand for one of
// the characters of template_id: small letters and the underscore, U+005F to
// U+007A.
func escapesName(raw []byte) bool {
	const escape = `\u00`
	for {
		at := bytes.Index(raw, []byte(escape))
		if at < 0 {
			return false
		}
		raw = raw[at+len(escape):]
		if len(raw) > 0 && '5' <= raw[0] && raw[0] <= '7' {
			return true
		}
	}
}
