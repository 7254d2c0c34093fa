// Package script is a model that follows a script: a YAML file of steps, each
// of which is one answer. It is for tests, and for people who try things with
// no key. It remembers nothing: where it is in its script it sees from the
// conversation, as a model would. It reads files of one folder, and nothing
// else.
package script

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// Client answers from the scripts of a folder: the model NAME is the file
// NAME.yaml.
type Client struct{ dir *os.Root }

var _ model.Client = (*Client)(nil)

// New returns the client of a folder, which has to exist.
func New(dir string) (*Client, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Wrap(err, "scripts")
	}
	return &Client{root}, nil
}

// Call implements model.Client.
func (c *Client) Call(ctx context.Context, req model.Request) (model.Answer, error) {
	s, err := c.read(req.Model)
	if err != nil {
		return model.Answer{}, refuse("%v", err)
	}
	at := position(req.Messages)
	if req.Summary {
		at = positionIn(req.Messages[0].Text)
		// Its place in the script is all that it has to keep.
		return model.Answer{
			Message: model.Message{Role: model.RoleModel, Text: fmt.Sprintf(place, at) + s.Summary}, Stop: model.StopEnd,
			Usage: model.Usage{Input: 1, Output: 1}, Attempts: 1,
		}, nil
	}
	if at >= len(s.Steps) {
		return model.Answer{}, refuse("the script %s has only %d steps", req.Model, len(s.Steps))
	}
	return s.Steps[at].answer(ctx, at, req.Messages)
}

// Models returns the names of the scripts.
func (c *Client) Models(context.Context) ([]string, error) {
	files, err := fs.Glob(c.dir.FS(), "*.yaml")
	if err != nil {
		return nil, refuse("%v", err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(file, ".yaml")
	}
	return files, nil
}

func refuse(format string, args ...any) *model.Error {
	return &model.Error{Kind: model.ErrRefused, Message: fmt.Sprintf(format, args...), Attempts: 1}
}

// read reads a script anew each time, so that it can be edited meanwhile.
func (c *Client) read(name string) (*Script, error) {
	file := name + ".yaml"
	if filepath.Base(file) != file {
		return nil, errors.Errorf("no script can have the name %q", name)
	}
	text, err := c.dir.ReadFile(file)
	if err != nil {
		return nil, errors.Errorf("the script %s cannot be read: %v", file, err)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, errors.Wrap(err, file)
	}
	return s, nil
}

// place is how a summary keeps the place in a script.
const place = "(%d steps of the script are done) "

var placeKept = regexp.MustCompile(`\((\d+) steps of the script are done\) `)

// position is how many steps of the script are done.
func position(messages []model.Message) int {
	at := 0
	for i, m := range messages {
		if match := placeKept.FindStringSubmatch(m.Text); i == 0 && match != nil {
			at, _ = strconv.Atoi(match[1])
		}
		if m.Role == model.RoleModel {
			at++
		}
	}
	return at
}

// positionIn is position for a conversation that comes as one text, as it does
// when a summary is wanted: each message begins with its role.
func positionIn(text string) int {
	return position([]model.Message{{Text: text}}) + strings.Count(text, "\n[model] ")
}

// answer is what the step says.
func (s *Step) answer(ctx context.Context, at int, heard []model.Message) (model.Answer, error) {
	if s.Wait > 0 {
		timer := time.NewTimer(time.Duration(s.Wait))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		case <-timer.C:
		}
	}
	if s.Fail != nil {
		return model.Answer{}, &model.Error{Kind: failures[s.Fail.Kind], Status: s.Fail.Status, Message: s.Fail.Message, Attempts: 1}
	}
	a := model.Answer{
		Message: model.Message{Role: model.RoleModel, Text: fill(s.Say, heard)}, Stop: model.StopEnd, Attempts: 1,
		Usage: model.Usage{Input: s.Tokens.Input, Output: s.Tokens.Output},
	}
	for i, c := range s.Calls {
		a.Stop = model.StopCalls
		a.Message.Calls = append(a.Message.Calls, model.ToolCall{
			ID: fmt.Sprintf("step%d_call%d", at+1, i+1), Name: c.Tool, Arguments: strings.TrimSpace(string(c.Arguments)),
		})
	}
	return a, nil
}

// fill puts what was heard last into a text.
func fill(text string, heard []model.Message) string {
	var input, result string
	for _, m := range heard {
		switch {
		case m.Result != nil:
			result = m.Result.Text
		case m.Role == model.RoleUser:
			input = m.Text
		}
	}
	return strings.NewReplacer("${input}", input, "${result}", result).Replace(text)
}
