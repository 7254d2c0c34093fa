package poll

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
	"github.com/ogen-go/ogen/validate"

	"agentrun/gen"
)

const (
	// maxErrorBody bounds what is read of an answer that is an error, in bytes.
	maxErrorBody = 1 << 20
	// maxDetail bounds StatusError.Detail, in characters.
	maxDetail = 1000
)

// Doer is an HTTP client. *http.Client is one.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// KeepStatus makes an HTTP client for gen.WithClient: every answer that is no
// 2xx becomes an error *StatusError. The generated client alone loses the
// status of an answer that is not as the contract says, such as a 502 of a
// proxy with a page for people, and Wait then has to take it for no answer.
func KeepStatus(client Doer) Doer { return keepStatus{client} }

type keepStatus struct{ client Doer }

// Do implements Doer.
func (k keepStatus) Do(r *http.Request) (*http.Response, error) {
	resp, err := k.client.Do(r)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	defer resp.Body.Close()
	// A body that breaks off leaves the status, which is what counts.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, &StatusError{Status: resp.StatusCode, Detail: detailOf(body)}
}

// withStatus turns an error of the generated client that knows the status into
// a *StatusError and nothing else.
func withStatus(err error) error {
	var kept *StatusError
	if errors.As(err, &kept) {
		return kept
	}
	var unexpected *validate.UnexpectedStatusCodeError
	if !errors.As(err, &unexpected) {
		return err
	}
	answer := &StatusError{Status: unexpected.StatusCode}
	if unexpected.Payload != nil && unexpected.Payload.Body != nil {
		// The generated client has read the body already.
		body, _ := io.ReadAll(unexpected.Payload.Body)
		answer.Detail = detailOf(body)
	}
	return answer
}

// refusal is an answer of the contract that is no status of a run.
func refusal(res gen.GetAgentRes) error {
	switch r := res.(type) {
	case *gen.GetAgentUnauthorized:
		return &StatusError{http.StatusUnauthorized, oneLine(r.Detail)}
	case *gen.GetAgentNotFound:
		return &StatusError{http.StatusNotFound, oneLine(r.Detail)}
	case *gen.HTTPValidationError:
		return &StatusError{http.StatusUnprocessableEntity, oneLine(issues(r.Detail))}
	case *gen.GetAgentBadGateway:
		return &StatusError{http.StatusBadGateway, oneLine(r.Detail)}
	case *gen.GetAgentServiceUnavailable:
		return &StatusError{http.StatusServiceUnavailable, oneLine(r.Detail)}
	default:
		return errors.Errorf("unexpected answer %T", res)
	}
}

// detailOf is the reason in the body of an error, "" when it has none of the
// two forms that this API knows.
func detailOf(body []byte) string {
	var reason gen.PublicErrorResponse
	if reason.UnmarshalJSON(body) == nil {
		return oneLine(reason.Detail)
	}
	var list gen.HTTPValidationError
	if list.UnmarshalJSON(body) == nil {
		return oneLine(issues(list.Detail))
	}
	return ""
}

// issues is a validation list in one line: "body.name: too long; body.files: …".
func issues(list []gen.ValidationIssue) string {
	texts := make([]string, len(list))
	for i, issue := range list {
		texts[i] = fmt.Sprintf("%s: %s", location(issue.Loc), issue.Msg)
	}
	return strings.Join(texts, "; ")
}

func location(loc []gen.ValidationIssueLocItem) string {
	steps := make([]string, len(loc))
	for i, item := range loc {
		steps[i] = item.String
		if item.IsInt() {
			steps[i] = strconv.Itoa(item.Int)
		}
	}
	return strings.Join(steps, ".")
}

// oneLine bounds what a server wrote and takes the line breaks out.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxDetail {
		return string(runes[:maxDetail]) + "…"
	}
	return text
}
