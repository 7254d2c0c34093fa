package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"github.com/google/jsonschema-go/jsonschema"
)

// builtin is a tool that can be opened.
type builtin struct {
	name, words string
	readOnly    bool
	open        func() (json.RawMessage, call, error)
}

// call does a tool's work with the arguments that a model wrote.
type call func(ctx context.Context, p *Place, arguments string, r *report) error

// define returns the tool whose arguments are an A, of which the schema is made:
// fields without omitempty are required, and the jsonschema tag describes one.
func define[A any](name, words string, readOnly bool, do func(context.Context, *Place, A, *report) error) builtin {
	return builtin{name: name, words: strings.TrimSpace(words), readOnly: readOnly, open: func() (json.RawMessage, call, error) {
		schema, err := jsonschema.For[A](nil)
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, nil, err
		}
		return raw, func(ctx context.Context, p *Place, arguments string, r *report) error {
			var args A
			if problem := decode(schema, arguments, &args); problem != "" {
				r.fail("Nothing was done: %s. %s", problem, takes(schema))
				return nil
			}
			return do(ctx, p, args, r)
		}, nil
	}}
}

// decode reads arguments strictly, or says what is wrong with them. Null counts
// as absent, and no arguments at all as an empty object, since models write them
// so.
func decode(schema *jsonschema.Schema, arguments string, into any) (problem string) {
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &fields); err != nil || fields == nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Sprintf("the arguments are not JSON (%v, after %d bytes)", syntax, syntax.Offset)
		}
		return "the arguments are not a JSON object"
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if schema.Properties[name] == nil {
			return fmt.Sprintf("there is no argument %q", name)
		}
		if string(fields[name]) == "null" {
			delete(fields, name)
		}
	}
	for _, name := range schema.Required {
		if fields[name] == nil {
			return fmt.Sprintf("the argument %q is missing", name)
		}
	}
	// encoding/json takes names in any case; of those there are only exact ones now.
	exact, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	err = json.Unmarshal(exact, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &wrong) && schema.Properties[wrong.Field] != nil:
		return fmt.Sprintf("the argument %q has to be %s, and is a JSON %s", wrong.Field, kindOf(schema.Properties[wrong.Field]), wrong.Value)
	}
	return err.Error()
}

// takes tells a model what the arguments of a tool are.
func takes(schema *jsonschema.Schema) string {
	list := make([]string, len(schema.PropertyOrder))
	for i, name := range schema.PropertyOrder {
		need := "optional"
		if slices.Contains(schema.Required, name) {
			need = "required"
		}
		list[i] = fmt.Sprintf("%s (%s, %s)", name, kindOf(schema.Properties[name]), need)
	}
	return "The arguments are one JSON object with: " + strings.Join(list, ", ") + "."
}

// kindOf says what an argument has to be.
func kindOf(schema *jsonschema.Schema) string {
	switch schema.Type {
	case "string":
		return "a string"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	}
	return "a JSON " + schema.Type
}
