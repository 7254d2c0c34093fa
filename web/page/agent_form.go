package page

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

// formValues are the fields of an agent file that the form shows, as the texts
// in its inputs, by their paths in the file. kind is program or model.
type formValues map[string]string

// formField is a field of the form.
type formField struct {
	path string
	// kind is the only kind of agent that has it, empty for both.
	kind string
	// required fields stay in the file when they are empty, so that it is told
	// that they are missing.
	required bool
	// value makes what the file gets of a text that is not empty.
	value func(text string) (value any, problem string)
}

var formFields = []formField{
	{path: "name", required: true, value: asText},
	{path: "command", kind: kindProgram, required: true, value: asCommand},
	{path: "gateway", kind: kindProgram, value: asList},
	{path: "model", kind: kindModel, required: true, value: asText},
	{path: "instructions", kind: kindModel, value: asText},
	{path: "tools", kind: kindModel, value: asList},
	{path: "secrets", value: asList},
	{path: "limits.turn", value: asText},
	{path: "limits.steps", value: asNumber},
	{path: "limits.tokens", value: asNumber},
	{path: "limits.cost", value: asNumber},
	{path: "limits.memory", value: asText},
}

// modelLimits go only with something that speaks to a model.
var modelLimits = []string{"limits.steps", "limits.tokens", "limits.cost"}

func asText(text string) (any, string) { return text, "" }

func asList(text string) (any, string) { return words(text), "" }

// words parts a list as people type one.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,\t\n", r) })
}

func asCommand(text string) (any, string) {
	command, problem := splitWords(text)
	if command == nil {
		command = []string{}
	}
	return command, problem
}

// asNumber leaves it to the agent file's own rules to refuse what is none.
func asNumber(text string) (any, string) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, ""
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n, ""
	}
	return text, ""
}

// readForm takes the form's values out of a request. In a request every line
// ends as on Windows.
func readForm(form url.Values) formValues {
	values := formValues{"kind": form.Get("f.kind")}
	if values["kind"] != kindModel {
		values["kind"] = kindProgram
	}
	for _, field := range formFields {
		text := unixLines(form.Get("f." + field.path))
		if field.path != "instructions" {
			text = strings.TrimSpace(text)
		}
		values[field.path] = text
	}
	tools := form["f.tools"]
	slices.Sort(tools)
	values["tools"] = strings.Join(tools, " ")
	return values
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// formOf shows what a file says. The fields of the other kind are those of
// before, so that a change of one's mind loses nothing.
func formOf(d agentfile.Definition, before formValues) formValues {
	kind, _ := kindOf(d)
	tools := slices.Sorted(slices.Values(d.Tools))
	values := formValues{
		"kind": kind, "name": d.Name, "command": joinWords(d.Command), "gateway": strings.Join(d.Gateway, " "),
		"model": d.Model, "instructions": d.Instructions, "tools": strings.Join(tools, " "),
		"secrets":     strings.Join(d.Secrets, " "),
		"limits.turn": durationText(time.Duration(d.Limits.Turn)), "limits.steps": numberText(d.Limits.Steps),
		"limits.tokens": numberText(d.Limits.Tokens), "limits.cost": "", "limits.memory": "",
	}
	if d.Limits.Cost != 0 {
		values["limits.cost"] = strconv.FormatFloat(float64(d.Limits.Cost)/1e6, 'f', -1, 64)
	}
	if d.Limits.Memory != 0 {
		values["limits.memory"] = sizeText(d.Limits.Memory)
	}
	for _, field := range formFields {
		if field.kind != "" && field.kind != kind {
			values[field.path] = before[field.path]
		}
	}
	return values
}

func numberText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// durationText writes 10m for what time.Duration writes as 10m0s.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// draft is an agent file that is being written, in both its forms.
type draft struct {
	// File is the text; it is what is saved.
	File   string
	Values formValues
	// was are the values that the file has already: what differs from them in the
	// next request was typed into the form.
	was formValues
	// Definition is nil when the file has faults.
	Definition *agentfile.Definition
	Faults     []gen.Fault
}

// newDraft shows a file in the form.
func newDraft(file string) draft {
	return mergeDraft(file, formValues{"kind": kindProgram}, formValues{"kind": kindProgram})
}

// readDraft brings both forms of a file together, whichever was typed into.
// Without the values that the file has, as in a request of no page, the file is
// taken as it is.
func readDraft(form url.Values) draft {
	now, was := readForm(form), formValues{}
	if err := json.Unmarshal([]byte(form.Get("was")), &was); err != nil {
		was = now
	}
	return mergeDraft(unixLines(form.Get("file")), was, now)
}

// mergeDraft changes in the file what differs between the values was and now,
// and shows the result.
func mergeDraft(file string, was, now formValues) draft {
	d := draft{File: file, Values: now, was: was}
	changes, pending := formChanges(was, now)
	for _, field := range slices.Sorted(maps.Keys(pending)) {
		d.Faults = append(d.Faults, gen.Fault{Field: field, Problem: pending[field]})
	}
	edited, err := agentfile.Edit(file, changes)
	if err == nil {
		d.File = edited
	}
	parsed, faulty := agentfile.Parse(d.File)
	if faulty != nil {
		d.Faults = append(d.Faults, faultsOf(faulty)...)
	}
	if err != nil {
		// Nothing of the form is in the file, and it stays so until it can be.
		if faulty == nil {
			d.Faults = append(d.Faults, faultsOf(err)...)
		}
		return d
	}
	d.was = formValues{}
	if faulty == nil {
		d.Definition = &parsed.Definition
		d.Values = formOf(parsed.Definition, now)
	}
	for path, value := range d.Values {
		d.was[path] = value
	}
	for path := range pending {
		d.Values[path], d.was[path] = now[path], was[path]
	}
	return d
}

// formChanges are what was typed into the form, as changes of the file. What
// the file cannot hold is pending, with what is wrong with it.
func formChanges(was, now formValues) (changes []agentfile.Change, pending map[string]string) {
	pending = map[string]string{}
	switched := was["kind"] != now["kind"]
	for _, field := range formFields {
		text := now[field.path]
		switch {
		case field.kind != "" && field.kind != now["kind"]:
			if switched {
				changes = append(changes, agentfile.Change{Field: field.path})
			}
		case switched && now["kind"] == kindProgram && slices.Contains(modelLimits, field.path):
			changes = append(changes, agentfile.Change{Field: field.path})
		case text == was[field.path] && (field.kind == "" || !switched):
		case text == "" && !field.required:
			changes = append(changes, agentfile.Change{Field: field.path})
		default:
			value, problem := field.value(text)
			if problem != "" {
				pending[field.path] = problem
				continue
			}
			changes = append(changes, agentfile.Change{Field: field.path, Value: value})
		}
	}
	return changes, pending
}

// faultsOf tells what is wrong with a file as the API does.
func faultsOf(err error) []gen.Fault {
	var invalid *agentfile.Error
	if !errors.As(err, &invalid) {
		return []gen.Fault{{Problem: err.Error()}}
	}
	faults := make([]gen.Fault, len(invalid.Faults))
	for i, f := range invalid.Faults {
		faults[i] = gen.Fault{Line: f.Line, Field: f.Field, Problem: f.Problem}
	}
	return faults
}

// faultsByField gathers the faults by the inputs of the form, each of which is
// for its field and for what is inside it.
func faultsByField(faults []gen.Fault) map[string]string {
	byField := map[string]string{}
	for _, fault := range faults {
		for _, field := range formFields {
			rest, found := strings.CutPrefix(fault.Field, field.path)
			if !found || rest != "" && rest[0] != '[' && rest[0] != '.' {
				continue
			}
			if byField[field.path] != "" {
				byField[field.path] += "; "
			}
			byField[field.path] += fault.Problem
		}
	}
	return byField
}
