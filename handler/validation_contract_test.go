package handler

import (
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestContractIsRead pins the order of the fields, which is the order of the
// issues, and that the rules were found at all.
func TestContractIsRead(t *testing.T) {
	root := createContract().root
	files := root.fields[len(root.fields)-1].rule
	if got, want := names(root), []string{"name", "template_id", "input_text", "files"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := names(files.items), []string{"filename", "content_base64"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if files.maxItems != 10 || !root.fields[1].rule.uuid || root.fields[0].rule.uuid {
		t.Errorf("files has at most %d items; template_id is a UUID: %t", files.maxItems, root.fields[1].rule.uuid)
	}
}

func names(r *rule) []string {
	var names []string
	for _, f := range r.fields {
		names = append(names, f.name)
	}
	return names
}

// TestRulesHaveIssues fails when the contract gets a rule that has no issue of
// its own yet: it would be answered with a value_error.
func TestRulesHaveIssues(t *testing.T) {
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if s.Ref != nil {
			visit(s.Ref)
			return
		}
		if s.Format != nil && s.Format.Name != "uuid" {
			t.Errorf("%s: format %s", s.Location, s.Format.Name)
		}
		for _, one := range s.Types.ToStrings() {
			if !slices.Contains([]string{"string", "null", "object", "array"}, one) {
				t.Errorf("%s: type %s", s.Location, one)
			}
		}
		for rule, used := range map[string]bool{
			"enum": s.Enum != nil, "const": s.Const != nil, "pattern": s.Pattern != nil, "not": s.Not != nil,
			"allOf": s.AllOf != nil, "anyOf": s.AnyOf != nil, "oneOf": s.OneOf != nil, "minItems": s.MinItems != nil,
			"uniqueItems": s.UniqueItems, "contains": s.Contains != nil, "minProperties": s.MinProperties != nil,
			"maxProperties": s.MaxProperties != nil, "additionalProperties": s.AdditionalProperties != nil,
			"minimum": s.Minimum != nil, "maximum": s.Maximum != nil, "prefixItems": s.PrefixItems != nil,
		} {
			if used {
				t.Errorf("%s: %s", s.Location, rule)
			}
		}
		for _, property := range s.Properties {
			visit(property)
		}
		if s.Items2020 != nil {
			visit(s.Items2020)
		}
	}
	visit(createContract().schema)
}
