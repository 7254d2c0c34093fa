package script

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/go-faster/yaml"

	"agentrun/run/model"
)

// Script is what a file says.
type Script struct {
	// Steps are the model's answers, in order.
	Steps []Step `yaml:"steps"`
	// Summary is what it says of a conversation that became too long.
	Summary string `yaml:"summary"`
}

// Step is one answer.
type Step struct {
	// Wait is how long the answer takes.
	Wait Duration `yaml:"wait"`
	// Say is the answer's text; ${input} in it is the user's last message, and
	// ${result} the last result of a tool.
	Say string `yaml:"say"`
	// Calls are what tools are to do.
	Calls []Call `yaml:"calls"`
	// Fail is an answer that the provider does not give.
	Fail *Failure `yaml:"fail"`
	// Tokens are what the answer is said to have taken.
	Tokens Tokens `yaml:"tokens"`
}

// Call is one call of a tool.
type Call struct {
	Tool string `yaml:"tool"`
	// Arguments are a mapping, or a text that is given as it is.
	Arguments Arguments `yaml:"arguments"`
}

// Failure is what a provider can answer instead.
type Failure struct {
	// Kind is refused, unavailable or too_long.
	Kind    string `yaml:"kind"`
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
}

// Tokens counts tokens.
type Tokens struct {
	Input  int64 `yaml:"input"`
	Output int64 `yaml:"output"`
}

// failures are the kinds of a Failure.
var failures = map[string]error{
	"refused": model.ErrRefused, "unavailable": model.ErrUnavailable, "too_long": model.ErrTooLong,
}

// Arguments are a JSON object as text, or any text.
type Arguments string

// UnmarshalYAML reads a mapping or a text.
func (a *Arguments) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*a = Arguments(n.Value)
		return nil
	}
	var fields map[string]any
	if err := n.Decode(&fields); err != nil {
		return err
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // It is for people too.
	err := e.Encode(fields)
	*a = Arguments(text.String())
	return err
}

// Duration is a time.Duration that is written as in "2s".
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	*d = Duration(parsed)
	return err
}

// Parse reads a script.
func Parse(text []byte) (*Script, error) {
	var s Script
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	for i, step := range s.Steps {
		switch {
		case step.Fail != nil && failures[step.Fail.Kind] == nil:
			return nil, errors.Errorf("step %d: fail.kind: want refused, unavailable or too_long, have %q", i+1, step.Fail.Kind)
		case step.Fail != nil && (step.Say != "" || len(step.Calls) > 0):
			return nil, errors.Errorf("step %d: an answer that fails says and calls nothing", i+1)
		}
		for j := range step.Calls {
			if step.Calls[j].Tool == "" {
				return nil, errors.Errorf("step %d: call %d names no tool", i+1, j+1)
			}
			if step.Calls[j].Arguments == "" {
				step.Calls[j].Arguments = "{}"
			}
		}
	}
	return &s, nil
}
