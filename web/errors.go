package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/go-faster/errors"
	"github.com/ogen-go/ogen/ogenerrors"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/storage/agentfile"
	"agentrun/storage/workspace"
	"agentrun/web/gen"
)

const problemType = "application/problem+json"

// problems maps what storage answers to a status. The text of these errors is
// meant for the operator and is sent; every other error is logged instead.
var problems = []struct {
	err    error
	status int
}{
	{errNoActor, http.StatusUnauthorized},
	{storage.ErrInvalidToken, http.StatusUnauthorized},
	{storage.ErrForbidden, http.StatusForbidden},
	{storage.ErrSignInRefused, http.StatusForbidden},
	{storage.ErrOrgNotFound, http.StatusNotFound},
	{storage.ErrUserNotFound, http.StatusNotFound},
	{storage.ErrTokenNotFound, http.StatusNotFound},
	{storage.ErrRevisionNotFound, http.StatusNotFound},
	{storage.ErrAgentNotFound, http.StatusNotFound},
	{storage.ErrKeyNotFound, http.StatusNotFound},
	{storage.ErrRunNotFound, http.StatusNotFound},
	{workspace.ErrNoFile, http.StatusNotFound},
	{workspace.ErrFileRefused, http.StatusNotFound},
	{storage.ErrRunTerminated, http.StatusConflict},
	{storage.ErrAgentArchived, http.StatusConflict},
	{storage.ErrAgentDeleted, http.StatusConflict},
	{storage.ErrNameTaken, http.StatusConflict},
	{storage.ErrLastOperator, http.StatusConflict},
	{storage.ErrAlreadySetUp, http.StatusConflict},
	{storage.ErrAmbiguousName, http.StatusConflict},
	{storage.ErrInvalidName, http.StatusUnprocessableEntity},
	{errNoMoment, http.StatusUnprocessableEntity},
	{storage.ErrInvalidPattern, http.StatusUnprocessableEntity},
	{storage.ErrInvalidExpiry, http.StatusUnprocessableEntity},
	{storage.ErrInvalidScope, http.StatusUnprocessableEntity},
	{storage.ErrInvalidEmail, http.StatusUnprocessableEntity},
	{storage.ErrWeakPassword, http.StatusUnprocessableEntity},
	{agentfile.ErrInvalid, http.StatusUnprocessableEntity},
	{workspace.ErrInvalidPath, http.StatusUnprocessableEntity},
	{storage.ErrNoSpace, http.StatusInsufficientStorage},
	{storage.ErrUnavailable, http.StatusServiceUnavailable},
	{storage.ErrDamagedRecord, http.StatusBadGateway},
}

// NewError makes the answer of an operation that failed.
func (m *Management) NewError(_ context.Context, err error) *gen.ProblemStatusCode {
	var refusal *ogenerrors.SecurityError
	if errors.As(err, &refusal) {
		err = refusal.Err // Without the generated code's own words about it.
	}
	status, detail := http.StatusInternalServerError, "internal error"
	for _, p := range problems {
		if errors.Is(err, p.err) {
			status, detail = p.status, err.Error()
			break
		}
	}
	if status >= http.StatusInternalServerError {
		m.log.Error("management request", zap.Error(err))
	}
	problem := newProblem(status, detail)
	var file *agentfile.Error
	if errors.As(err, &file) {
		for _, f := range file.Faults {
			problem.Faults = append(problem.Faults, gen.Fault{Line: f.Line, Field: f.Field, Problem: f.Problem})
		}
	}
	return &gen.ProblemStatusCode{StatusCode: status, Response: problem}
}

// refused answers what the generated code refused before an operation ran, or
// could not send after it.
func (m *Management) refused(_ context.Context, w http.ResponseWriter, _ *http.Request, err error) {
	var (
		params  *ogenerrors.DecodeParamsError
		body    *ogenerrors.DecodeRequestError
		tooLong *http.MaxBytesError
	)
	switch {
	case errors.As(err, &tooLong):
		writeProblem(w, newProblem(http.StatusRequestEntityTooLarge, "the request is too long"))
	case errors.As(err, &params), errors.As(err, &body):
		writeProblem(w, newProblem(http.StatusUnprocessableEntity, err.Error()))
	default:
		m.log.Error("management request", zap.Error(err))
		writeProblem(w, newProblem(http.StatusInternalServerError, "internal error"))
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, newProblem(http.StatusNotFound, "no such operation"))
}

func methodNotAllowed(w http.ResponseWriter, _ *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	writeProblem(w, newProblem(http.StatusMethodNotAllowed, "the operation takes "+allowed))
}

func newProblem(status int, detail string) gen.Problem {
	return gen.Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

func writeProblem(w http.ResponseWriter, p gen.Problem) {
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	// The pointer has the generated encoding. A client that went away gets
	// nothing, and nothing is lost by that.
	_ = json.NewEncoder(w).Encode(&p)
}
