package handler

import (
	"encoding/json"
	"fmt"
)

// issue is one thing that is wrong with a request, as it is sent. Types,
// messages and ctx are those of pydantic 2, which clients read.
type issue struct {
	Type string `json:"type"`
	// Loc leads to the faulty part: names, and integers for places in a list.
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
	// Input is the faulty value; nil leaves it out.
	Input json.RawMessage `json:"input,omitempty"`
	Ctx   map[string]any  `json:"ctx,omitempty"`
}

// about returns the issue with its place and the value found there.
func (i issue) about(input json.RawMessage, loc ...any) issue {
	i.Loc, i.Input = loc, input
	return i
}

var jsonNull = json.RawMessage("null")

var (
	fieldRequired = issue{Type: "missing", Msg: "Field required"}
	notAnObject   = issue{
		Type: "model_attributes_type",
		Msg:  "Input should be a valid dictionary or object to extract fields from",
	}
	notAList   = issue{Type: "list_type", Msg: "Input should be a valid list"}
	notAString = issue{Type: "string_type", Msg: "Input should be a valid string"}
	notUnicode = issue{
		Type: "string_unicode",
		Msg:  "Input should be a valid string, unable to parse raw data as a unicode string",
	}
	notUUIDText = issue{Type: "uuid_type", Msg: "UUID input should be a string, bytes or UUID object"}
)

func tooShort(limit int) issue {
	return issue{
		Type: "string_too_short",
		Msg:  fmt.Sprintf("String should have at least %s", characters(limit)),
		Ctx:  map[string]any{"min_length": limit},
	}
}

func tooLong(limit int) issue {
	return issue{
		Type: "string_too_long",
		Msg:  fmt.Sprintf("String should have at most %s", characters(limit)),
		Ctx:  map[string]any{"max_length": limit},
	}
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", n)
}

func tooManyItems(limit, found int) issue {
	items := fmt.Sprintf("%d items", limit)
	if limit == 1 {
		items = "1 item"
	}
	return issue{
		Type: "too_long",
		Msg:  fmt.Sprintf("List should have at most %s after validation, not %d", items, found),
		Ctx:  map[string]any{"field_type": "List", "max_length": limit, "actual_length": found},
	}
}

func invalidUUID(fault string) issue {
	return issue{
		Type: "uuid_parsing",
		Msg:  "Input should be a valid UUID, " + fault,
		Ctx:  map[string]any{"error": fault},
	}
}

// invalidJSON says where a body stops being JSON, and why. It stands alone, and
// its input is always the empty object.
func invalidJSON(at int, fault string) issue {
	i := issue{Type: "json_invalid", Msg: "JSON decode error", Ctx: map[string]any{"error": fault}}
	return i.about(json.RawMessage("{}"), "body", at)
}

// otherFault is for a rule of the contract that has no kind of its own here, so
// that breaking it is never answered with an empty list.
func otherFault(fault string) issue {
	return issue{Type: "value_error", Msg: "Value error, " + fault, Ctx: map[string]any{"error": fault}}
}
