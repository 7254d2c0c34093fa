package handler

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/go-faster/errors"
	"github.com/ogen-go/ogen/ogenerrors"
	"go.uber.org/zap"

	"agentrun/storage"
)

var (
	// errMissingKey says that no key was sent in either header.
	errMissingKey = errors.New("no API key was sent")
	// errNotBase64 says that a file's content is not standard base64. It always
	// comes inside a *base64Error.
	errNotBase64 = errors.New("not valid base64")
	// errFilesTooLarge says that the decoded files are over maxFiles.
	errFilesTooLarge = errors.New("files are too large")
	// errBodyTooLarge says that the body is over Config.MaxBody.
	errBodyTooLarge = errors.New("request body is too large")
)

// answer is the status and detail of a failure.
type answer struct {
	status int
	detail string
}

// internalError is what the client learns of a fault of ours.
var internalError = answer{http.StatusInternalServerError, "internal error"}

// What a GET answers when the store fails; see section 7 of the specification.
var (
	lookupFailed = answer{http.StatusBadGateway, "event history lookup failed"}
	unavailable  = answer{http.StatusServiceUnavailable, "event history is temporarily unavailable"}
)

// answers is the one table from errors to answers. Where say is set, the detail
// is what it finds in the error: a text that is written for clients.
var answers = []struct {
	err  error
	post answer
	get  answer
	say  func(error) string
}{
	{err: errMissingKey, post: answer{401, "Missing API key"}, get: answer{401, "Missing API key"}},
	{err: storage.ErrInvalidKey, post: answer{401, "Invalid API key"}, get: answer{401, "Invalid API key"}},
	{err: storage.ErrTemplateMismatch, post: answer{403, "API key is not valid for the requested template"}, get: lookupFailed},
	{err: storage.ErrAgentDeleted, post: answer{404, "Agent template not found"}, get: lookupFailed},
	{err: storage.ErrRunNotFound, post: internalError, get: answer{404, "Agent not found"}},
	{err: storage.ErrAgentArchived, post: answer{status: 409}, get: lookupFailed, say: textOf[*storage.ArchivedError]},
	{err: errBodyTooLarge, post: answer{413, "request body exceeds the allowed limit"}, get: lookupFailed},
	{err: errNotBase64, post: answer{status: 422}, get: lookupFailed, say: textOf[*base64Error]},
	{err: errFilesTooLarge, post: answer{413, "total file size exceeds the allowed limit"}, get: lookupFailed},
	{err: storage.ErrModelUnusable, post: answer{status: 422}, get: lookupFailed, say: textOf[*storage.ModelError]},
	{err: storage.ErrUnavailable, post: internalError, get: unavailable},
}

// textOf returns the text of the error of type E in a chain, without that of
// what is wrapped around it.
func textOf[E error](err error) string {
	var e E
	errors.As(err, &e)
	return e.Error()
}

// answerFor returns the answer to a failed request. What no row names is a
// fault of ours, which a GET can only call a failed look-up.
func answerFor(method string, err error) answer {
	a := internalError
	if method != http.MethodPost {
		a = lookupFailed
	}
	for _, row := range answers {
		if !errors.Is(err, row.err) {
			continue
		}
		if method != http.MethodPost {
			return row.get
		}
		if a = row.post; row.say != nil {
			a.detail = row.say(err)
		}
		return a
	}
	return a
}

// answerError answers every request that failed: in security, in decoding, in
// validation, or in the operation.
func (h *Handler) answerError(_ context.Context, w http.ResponseWriter, r *http.Request, err error) {
	var (
		security *ogenerrors.SecurityError
		params   *ogenerrors.DecodeParamsError
		body     *ogenerrors.DecodeRequestError
		invalid  *invalidError
	)
	switch {
	case errors.As(err, &security) && errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied):
		err = errMissingKey
	case errors.As(err, &params):
		h.answerIssues(w, r, pathIssues(runSegment(r)))
		return
	case errors.As(err, &body):
		issues, tooLarge := bodyFaults(r, err)
		if tooLarge == nil {
			h.answerIssues(w, r, issues)
			return
		}
		err = tooLarge
	case errors.As(err, &invalid):
		h.answerIssues(w, r, invalid.issues)
		return
	case errors.Is(err, storage.ErrCommitUnknown):
		// Neither a yes nor a no would be the truth: the client gets no answer
		// and reconciles, as the specification has it.
		h.log.Error("request", zap.String("method", r.Method), zap.Error(err))
		panic(http.ErrAbortHandler)
	}
	a := answerFor(r.Method, err)
	// A client that went away makes calls of the store fail too: no fault of ours.
	if a.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		h.log.Error("request", zap.String("method", r.Method), zap.Int("status", a.status), zap.Error(err))
	} else {
		h.log.Debug("request refused", zap.String("method", r.Method), zap.Int("status", a.status), zap.Error(err))
	}
	if a.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	h.noteRefused(r, a.status)
	writeDetail(w, a)
}

func (h *Handler) answerIssues(w http.ResponseWriter, r *http.Request, issues []issue) {
	h.noteRefused(r, http.StatusUnprocessableEntity)
	writeJSON(w, http.StatusUnprocessableEntity, invalidBody{issues})
}

// noteRefused remembers, for the log of the key, that a request to create a run
// was refused. A request whose key was refused is nobody's.
func (h *Handler) noteRefused(r *http.Request, status int) {
	if who, ok := r.Context().Value(callerSlot{}).(*storage.Caller); ok && r.Method == http.MethodPost && who.KeyID != (storage.KeyID{}) {
		h.store.NoteRefused(who.KeyID, status)
	}
}

// bodyFaults returns everything that is wrong with a body that the generated
// code refused, or errBodyTooLarge. That code leaves the body to be read again.
func bodyFaults(r *http.Request, refusal error) ([]issue, error) {
	var tooLarge *http.MaxBytesError
	if errors.As(refusal, &tooLarge) {
		return nil, errBodyTooLarge
	}
	raw, err := io.ReadAll(r.Body)
	if errors.As(err, &tooLarge) {
		return nil, errBodyTooLarge
	}
	issues := bodyIssues(r.Header.Get("Content-Type"), raw)
	if len(issues) == 0 {
		issues = unreadableBody
	}
	return issues, nil
}

// invalidError refuses a request that the generated code accepted.
type invalidError struct{ issues []issue }

func (e *invalidError) Error() string { return "the request is not valid" }

// invalidBody is the body of a failed validation.
type invalidBody struct {
	Detail []issue `json:"detail"`
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeDetail(w, answer{http.StatusNotFound, "Not Found"})
}

func methodNotAllowed(w http.ResponseWriter, _ *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	writeDetail(w, answer{http.StatusMethodNotAllowed, "Method Not Allowed"})
}

func writeDetail(w http.ResponseWriter, a answer) {
	writeJSON(w, a.status, struct {
		Detail string `json:"detail"`
	}{a.detail})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// A client that went away gets nothing, and nothing is lost by that.
	_ = enc.Encode(body)
}
