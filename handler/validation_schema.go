package handler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"github.com/go-faster/jx"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schemaIssues returns what is wrong with a body that is JSON.
func schemaIssues(body jx.Raw) []issue {
	c := createContract()
	var doc document
	value := doc.read(doc.add(nil, nil, c.root, body))
	err := c.schema.Validate(value)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		doc.note(invalid)
	}
	return doc.issues()
}

// document is a body taken apart along the contract.
type document struct {
	// parts holds what the contract has a rule for, in the contract's order,
	// which is the order of the issues; absent fields too.
	parts []*part
	// byPath finds a part by the names and places that lead to it.
	byPath map[string]*part
}

// part is one value of a body.
type part struct {
	parent *part
	loc    []any
	path   string
	rule   *rule
	text   jx.Raw // nil when absent
	length int    // of an array
	fault  *issue // what is wrong with it, without place and value
}

// refuse notes what is wrong with a part. One value has at most one issue.
func (p *part) refuse(fault issue) {
	if p.fault == nil {
		p.fault = &fault
	}
}

// add enters a part: the body itself, or the one under key in parent.
func (doc *document) add(parent *part, key any, r *rule, text jx.Raw) *part {
	p := &part{parent: parent, rule: r, text: text, loc: []any{"body"}}
	if parent != nil {
		p.loc = append(slices.Clip(parent.loc), key)
		p.path = parent.path + "/" + fmt.Sprint(key)
	}
	if doc.byPath == nil {
		doc.byPath = map[string]*part{}
	}
	doc.parts = append(doc.parts, p)
	doc.byPath[p.path] = p
	return p
}

// read returns the value of a part in the form that the schema is asked about.
func (doc *document) read(p *part) any {
	switch p.text.Type() {
	case jx.Object:
		return doc.readObject(p)
	case jx.Array:
		return doc.readArray(p)
	case jx.String:
		if loneSurrogate(p.text) {
			p.refuse(notUnicode)
		}
		text, _ := jx.DecodeBytes(p.text).Str()
		return text
	case jx.Bool:
		return false
	case jx.Null:
		return nil
	default:
		// The contract has no rule about a number but that it is none of what is
		// asked for; the digits, which can be many, do not matter.
		return 0
	}
}

func (doc *document) readObject(p *part) any {
	given := make(map[string]jx.Raw, len(p.rule.fields))
	if len(p.rule.fields) > 0 {
		eachMember(p.text, func(name []byte, text jx.Raw) {
			if slices.ContainsFunc(p.rule.fields, func(f field) bool { return f.name == string(name) }) {
				given[string(name)] = text
			}
		})
	}
	value := make(map[string]any, len(given))
	for _, f := range p.rule.fields {
		text, ok := given[f.name]
		child := doc.add(p, f.name, f.rule, text)
		if ok {
			value[f.name] = doc.read(child)
		}
	}
	return value
}

// readArray looks at the items only when they are not too many: of a list that
// is too long, nothing else is said, and reading it would cost too much.
func (doc *document) readArray(p *part) any {
	if p.rule.items == nil {
		return []any{}
	}
	var texts []jx.Raw
	eachItem(p.text, func(text jx.Raw) {
		if p.length++; p.length <= p.rule.maxItems {
			texts = append(texts, text)
		}
	})
	if p.length > p.rule.maxItems {
		return make([]any, p.rule.maxItems+1)
	}
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = doc.read(doc.add(p, i, p.rule.items, text))
	}
	return values
}

// note assigns what the schema refused to the parts. Parts that were not read
// have nothing to be said about.
func (doc *document) note(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		doc.note(cause)
	}
	var path string
	if len(e.InstanceLocation) > 0 {
		path = "/" + strings.Join(e.InstanceLocation, "/")
	}
	p, ok := doc.byPath[path]
	if !ok || len(e.Causes) > 0 {
		return
	}
	if absent, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range absent.Missing {
			doc.byPath[path+"/"+name].refuse(fieldRequired)
		}
		return
	}
	p.refuse(p.faultOf(e.ErrorKind))
}

// faultOf translates what the schema says about a part.
func (p *part) faultOf(k jsonschema.ErrorKind) issue {
	switch k := k.(type) {
	case *kind.Type:
		switch {
		case slices.Contains(k.Want, "object"):
			return notAnObject
		case slices.Contains(k.Want, "array"):
			return notAList
		case p.rule.uuid:
			return notUUIDText
		case slices.Contains(k.Want, "string"):
			return notAString
		}
	case *kind.MinLength:
		return tooShort(k.Want)
	case *kind.MaxLength:
		return tooLong(k.Want)
	case *kind.MaxItems:
		return tooManyItems(k.Want, p.length)
	case *kind.Format:
		if p.rule.uuid {
			return invalidUUID(k.Err.Error())
		}
	}
	return otherFault(strings.Join(k.KeywordPath(), "/"))
}

func (doc *document) issues() []issue {
	var issues []issue
	for _, p := range doc.parts {
		if p.fault == nil {
			continue
		}
		found := p.text
		if found == nil {
			found = p.parent.text
		}
		issues = append(issues, p.fault.about(echo(found), p.loc...))
	}
	return issues
}
