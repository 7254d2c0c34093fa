// Package page is the application: the pages where people make agents and
// keys, watch runs, give input, stop and archive. It is a client of the
// management API, called in memory, so that nothing can be done on a page that
// a program could not do; sessions and sign-in are its own. It holds no rule of
// agentrun, reads and writes no rows but those of sessions, and shows what
// agents wrote only escaped or through markup.
package page

import (
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/web/gen"
)

// API is the management API, called in memory. Whom a call is made for is in
// its context; what that actor may not do, the API refuses.
type API interface {
	gen.Handler
	gen.RawHandler
}

// Config of the application.
type Config struct {
	// API and Store are required. Of Store only sign-in and sessions are used.
	API   API
	Store *storage.Store
	// BaseURL is the address that people reach the server at, such as
	// https://agents.example.org; empty means whatever address a request names.
	// With https, cookies are for that only.
	BaseURL string
	// Hosts are further names that the server may be reached by, besides that of
	// BaseURL, localhost and every IP address; what names another host is refused,
	// so that a page from elsewhere cannot have its own name point here.
	Hosts []string
	// SetupToken allows whoever has it to make the first user; empty means nobody.
	SetupToken string
	// Quit is closed when the server ends and live pages should end with it. Nil
	// means never.
	Quit <-chan struct{}
	// Log receives the causes of internal errors; nil means nothing is logged.
	Log *zap.Logger
}

// App serves the pages.
type App struct {
	api       API
	cfg       Config
	templates templates
	mux       *http.ServeMux
	routes    []route
	sessions  *scs.SessionManager
	slow      *slowDown
	// endWait is how many seconds a page waits for a run's end.
	endWait int
	// beat is how often a stream with nothing to tell shows that it is alive.
	beat time.Duration
	log  *zap.Logger
}

// New returns the application as an HTTP handler. What is no path of the
// application's goes to next.
func New(cfg Config, next http.Handler) (http.Handler, error) {
	a, err := newApp(cfg)
	if err != nil {
		return nil, err
	}
	return a.protect(next), nil
}

func newApp(cfg Config) (*App, error) {
	a := &App{api: cfg.API, cfg: cfg, mux: http.NewServeMux(), slow: newSlowDown(time.Now), beat: beatEvery, endWait: endWait, log: cfg.Log}
	a.sessions = newSessions(cfg.Store, a.secure())
	if a.log == nil {
		a.log = zap.NewNop()
	}
	var err error
	if a.templates, err = parseTemplates(); err != nil {
		return nil, errors.Wrap(err, "pages")
	}
	a.frameRoutes()
	a.agentRoutes()
	a.runRoutes()
	a.orgRoutes()
	return a, nil
}
