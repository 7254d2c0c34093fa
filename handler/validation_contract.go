package handler

import (
	"bytes"
	"math"
	"strings"
	"sync"

	"github.com/go-faster/errors"
	"github.com/go-faster/jx"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract holds the rules for the body of a POST as the contract states them.
type contract struct {
	schema *jsonschema.Schema
	root   *rule
}

// rule tells how a value is taken apart for the schema: what the contract has
// no rule for is not looked at, however large it is.
type rule struct {
	uuid     bool
	fields   []field // of an object, in the contract's order
	items    *rule   // of an array
	maxItems int
}

type field struct {
	name string
	rule *rule
}

// createContract compiles the contract when it is first needed.
var createContract = sync.OnceValue(func() contract {
	c, err := compileContract("/components/schemas/PublicCreateAgentRequest")
	if err != nil {
		// The contract is a part of the program, not something it is given.
		panic(err)
	}
	return c
})

func compileContract(pointer string) (contract, error) {
	const url = "contract:///openapi.json"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapiJSON))
	if err != nil {
		return contract{}, errors.Wrap(err, "contract")
	}
	c := jsonschema.NewCompiler()
	// The library's own idea of a UUID is another one.
	c.RegisterFormat(&jsonschema.Format{Name: "uuid", Validate: checkUUID})
	c.AssertFormat()
	if err := c.AddResource(url, doc); err != nil {
		return contract{}, errors.Wrap(err, "contract")
	}
	schema, err := c.Compile(url + "#" + pointer)
	if err != nil {
		return contract{}, errors.Wrap(err, "contract")
	}
	return contract{schema: schema, root: ruleOf(schema)}, nil
}

// checkUUID is the format uuid; its error is the text that clients read.
func checkUUID(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	if fault := uuidFault(text); fault != "" {
		return errors.New(fault)
	}
	return nil
}

func ruleOf(s *jsonschema.Schema) *rule {
	for s.Ref != nil {
		s = s.Ref
	}
	r := &rule{uuid: s.Format != nil && s.Format.Name == "uuid", maxItems: math.MaxInt}
	if s.MaxItems != nil {
		r.maxItems = *s.MaxItems
	}
	if s.Items2020 != nil {
		r.items = ruleOf(s.Items2020)
	}
	for _, name := range propertyNames(s.Location) {
		r.fields = append(r.fields, field{name, ruleOf(s.Properties[name])})
	}
	return r
}

// propertyNames returns the properties of a schema of the contract as they are
// written there: the order of the issues.
func propertyNames(location string) []string {
	_, pointer, _ := strings.Cut(location, "#/")
	at := jx.Raw(openapiJSON)
	for _, key := range append(strings.Split(pointer, "/"), "properties") {
		var next jx.Raw
		eachMember(at, func(name []byte, value jx.Raw) {
			if string(name) == key {
				next = value
			}
		})
		at = next
	}
	var names []string
	eachMember(at, func(name []byte, _ jx.Raw) { names = append(names, string(name)) })
	return names
}
