package mcp

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRestarts is how often a server is connected to anew for a call.
const maxRestarts = 3

// closeGrace is how long a server has to end by itself once it was told to.
const closeGrace = 500 * time.Millisecond

// The versions of the protocol that are asked for. Servers that know only the
// first may end at a question of the second, those that know only the second
// answer the first with an error; so the first is tried first.
const (
	usualVersion  = "2025-11-25"
	newestVersion = "" // the SDK's
)

// server is one server of a turn.
type server struct {
	Server
	cfg *Config
	// busy is held, by what is in it, by whoever looks at or changes the fields
	// below. It is a channel because a connection is made under it, for which
	// nobody waits longer than for his context.
	busy     chan struct{}
	link     *link // nil when there is no connection
	restarts int
	closed   bool
	// leaving counts the connections that were given up and are not gone yet.
	leaving sync.WaitGroup
}

// link is one connection to a server.
type link struct {
	session *sdk.ClientSession // nil when none came about
	program *program           // nil when the server is elsewhere
	// end ends by force what belongs to the connection.
	end context.CancelFunc
}

func newServer(s Server, cfg *Config) *server {
	return &server{Server: s, cfg: cfg, busy: make(chan struct{}, 1)}
}

func (s *server) hold(ctx context.Context) error {
	select {
	case s.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *server) release() { <-s.busy }

// patiently returns a context for a server to begin in.
func (s *server) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.cfg.Patience, errors.Errorf("no answer within %v", s.cfg.Patience))
}

// open makes the first connection and lists the tools.
func (s *server) open(ctx context.Context) listing {
	s.busy <- struct{}{} // Nobody else knows the server yet.
	defer s.release()
	ctx, cancel := s.patiently(ctx)
	defer cancel()
	l, err := s.connect(ctx)
	if err != nil {
		return listing{problems: []string{err.Error()}}
	}
	found, err := list(ctx, l.session)
	if err != nil {
		err = l.why(ctx, err)
		s.giveUp(l)
		return listing{problems: []string{"its tools: " + err.Error()}}
	}
	s.link = l
	return found
}

// use returns the connection, and makes a new one when there is none.
func (s *server) use(ctx context.Context) (*link, error) {
	if err := s.hold(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	switch {
	case s.closed:
		return nil, errClosed
	case s.link != nil:
		return s.link, nil
	case s.restarts == maxRestarts:
		return nil, errRestarts
	}
	s.restarts++
	ctx, cancel := s.patiently(ctx)
	defer cancel()
	l, err := s.connect(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "it was connected to anew")
	}
	s.link = l
	return l, nil
}

// drop forgets a connection that is closed, unless somebody did already.
func (s *server) drop(ctx context.Context, l *link) {
	if s.hold(ctx) != nil {
		return
	}
	defer s.release()
	if s.link == l && !s.closed {
		s.link = nil
		s.giveUp(l)
	}
}

// giveUp ends a connection, which the caller does not wait for. The caller holds
// the server.
func (s *server) giveUp(l *link) {
	l.end()
	s.leaving.Go(l.close)
}

// close ends the server; nothing of it is left then.
func (s *server) close() {
	s.busy <- struct{}{} // Whoever connects was stopped.
	defer s.release()
	s.closed = true
	if s.link != nil {
		s.link.close()
		s.link = nil
	}
	s.leaving.Wait()
}

// connect makes a connection. The caller holds the server.
func (s *server) connect(ctx context.Context) (*link, error) {
	l, err := s.connectWith(ctx, usualVersion)
	if refusesHandshake(err) {
		l, err = s.connectWith(ctx, newestVersion)
	}
	return l, err
}

// refusesHandshake says whether an error is what a server answers that does not
// know the handshake of usualVersion.
func refusesHandshake(err error) bool {
	var refusal *jsonrpc.Error
	return errors.As(err, &refusal) && slices.Contains([]int64{
		jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams, sdk.CodeUnsupportedProtocolVersion,
	}, refusal.Code)
}

func (s *server) connectWith(ctx context.Context, version string) (*link, error) {
	// The connection outlives the time that it has to be made in.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	l := &link{end: end}
	transport, err := s.transport(life, l)
	if err != nil {
		end()
		return nil, err
	}
	// Without capabilities there is nothing that a server could ask for.
	client := sdk.NewClient(&sdk.Implementation{Name: "agentrun", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	// The farewell of the SDK to a server that does not answer waits, too.
	stop := context.AfterFunc(ctx, end)
	l.session, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	stop()
	if err != nil {
		err = l.why(ctx, err)
		s.giveUp(l)
		return nil, err
	}
	return l, nil
}

// transport is the way to the server, which lasts as long as life does.
func (s *server) transport(life context.Context, l *link) (sdk.Transport, error) {
	if s.URL == "" {
		l.program = startProgram(life, l.end, s.cfg.Sandbox, s.cfg.Command(s.Command))
		return l.program, nil
	}
	if s.cfg.HTTP == nil {
		return nil, errNoHosts
	}
	return &sdk.StreamableClientTransport{
		Endpoint: s.URL, HTTPClient: tie(s.cfg.HTTP, life), MaxEventSize: maxMessage,
		DisableStandaloneSSE: true, // It brings only what is ignored.
	}, nil
}

// why says for people why something failed that ctx was for.
func (l *link) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		if l.program != nil {
			return l.program.withLastWords(err)
		}
		return err
	}
	if l.program != nil {
		if reason := l.program.brokenBy(); reason != nil {
			return reason
		}
	}
	// The URL may have a key in it.
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

// close ends the connection, politely as long as closeGrace, and returns when
// nothing of it is left. Its calls must have ended.
func (l *link) close() {
	force := time.AfterFunc(closeGrace, l.end)
	defer force.Stop()
	if l.session != nil {
		_ = l.session.Close() // Whether the other side takes leave too does not matter.
	}
	if l.program != nil {
		<-l.program.over
	}
	l.end()
}
