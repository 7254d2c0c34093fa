// Package handler is the public API: it turns requests of the contract
// (openapi.yaml) into calls of storage, and what storage says into the
// contract's answers. It alone speaks the wire's names: status codes, headers,
// details, JSON fields. It holds no rule of its own, runs nothing, and never
// imports the rooms beside it.
package handler

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-faster/errors"
	"github.com/ogen-go/ogen/middleware"
	"go.uber.org/zap"

	"agentrun/gen"
	"agentrun/storage"
	"agentrun/storage/workspace"
)

// DefaultMaxBody is the longest request body that is read unless configured
// otherwise, in bytes. It leaves room above 10 MiB of files in base64 (14 MB),
// so that files somewhat over their limit get the answer about files.
const DefaultMaxBody = 32 << 20

// Config of the public API.
type Config struct {
	// Store and Workspaces are required.
	Store      *storage.Store
	Workspaces *workspace.Store
	// Providers are the names of the model providers that are configured.
	Providers []string
	// MaxBody bounds a request body in bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// Log receives the causes of failed requests; nil means nothing is logged.
	Log *zap.Logger
}

// Handler implements the operations of the contract.
type Handler struct {
	store      *storage.Store
	workspaces *workspace.Store
	providers  []string
	maxBody    int64
	log        *zap.Logger
}

var (
	_ gen.Handler         = (*Handler)(nil)
	_ gen.RawHandler      = (*Handler)(nil)
	_ gen.SecurityHandler = (*Handler)(nil)
)

// New returns the public API as an HTTP handler.
func New(cfg Config) (http.Handler, error) {
	h := &Handler{
		store: cfg.Store, workspaces: cfg.Workspaces, providers: cfg.Providers,
		maxBody: cfg.MaxBody, log: cfg.Log,
	}
	if h.maxBody == 0 {
		h.maxBody = DefaultMaxBody
	}
	if h.log == nil {
		h.log = zap.NewNop()
	}
	server, err := gen.NewServer(h, h, h,
		gen.WithErrorHandler(h.answerError),
		gen.WithNotFound(notFound),
		gen.WithMethodNotAllowed(methodNotAllowed),
		gen.WithMiddleware(h.secondLook),
	)
	if err != nil {
		return nil, errors.Wrap(err, "public API")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if r.URL.Path == runPrefix {
			// The generated router would take the nothing at the end for an ID.
			notFound(w, r)
			return
		}
		normalizeHeaders(r.Header)
		r.Body = http.MaxBytesReader(w, r.Body, h.maxBody)
		if r.Header.Get("Content-Type") == jsonType {
			r.Body = newWithoutMark(r.Body)
		}
		if r.Method == http.MethodPost {
			r = r.WithContext(context.WithValue(r.Context(), callerSlot{}, new(storage.Caller)))
		}
		server.ServeHTTP(w, r)
	}), nil
}

// requestKey is where the context of an operation that answers with bytes has
// its request.
type requestKey struct{}

// secondLook runs after the generated code accepted a request. That code reads
// some faulty texts as if they were right; those are refused here.
func (h *Handler) secondLook(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	switch req.OperationName {
	case gen.GetAgentOperation:
		if issues := pathIssues(runSegment(req.Raw)); len(issues) > 0 {
			return middleware.Response{}, &invalidError{issues}
		}
	case gen.CreateAgentOperation:
		body, ok := req.Body.(*gen.PublicCreateAgentRequest)
		if !ok {
			return middleware.Response{}, errors.Errorf("a create request of type %T", req.Body)
		}
		if issues := hiddenIssues(req.RawBody, body); len(issues) > 0 {
			return middleware.Response{}, &invalidError{issues}
		}
	case gen.GetOpenAPIOperation:
		req.SetContext(context.WithValue(req.Context, requestKey{}, req.Raw))
	}
	return next(req)
}

// runPrefix stands before the run's ID in a path.
const runPrefix = "/v1/agents/"

// runSegment returns the run ID of a path as it was sent, percent-decoded.
func runSegment(r *http.Request) string {
	return strings.TrimPrefix(r.URL.Path, runPrefix)
}
