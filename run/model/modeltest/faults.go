package modeltest

import (
	"net"
	"net/http"
	"strings"
	"time"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

const (
	jsonKind = "application/json"
	htmlKind = "text/html; charset=utf-8"
	page     = "<!doctype html><html><head><title>Welcome</title></head><body>" + Key + "</body></html>"
	// busy has a body of most providers' form, with the key in it.
	busy = `{"type":"error","error":{"type":"some_error","message":"wait a\nmoment, ` + Key + `"}}`
	// moment is what of it is fit to be shown.
	moment = "wait a moment, [key]"
	// brief is how long silence may last where it has to be noticed. In less, a
	// request does not reach the server on a machine that has more to do.
	brief = 200 * time.Millisecond
	// huge is how long the line is that has no end.
	huge = 100 << 20
)

// five is how often a provider is asked at most.
const five = 5

// fault is something that goes wrong, each time or until Good comes.
type fault struct {
	name  string
	serve func(p Provider, s *Server, w http.ResponseWriter, r *http.Request)
	// kind is the error; nil where the answer is the right one all the same.
	kind     error
	status   int
	attempts int
	says     string
	// silent is true where only the time without a byte ends the attempt.
	silent bool
	after  time.Duration
	// heavy is true where an attempt costs so much that two have to do.
	heavy bool
}

func status(code int, kind, body string, header ...string) func(Provider, *Server, http.ResponseWriter, *http.Request) {
	return func(_ Provider, _ *Server, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		fail(w, code, kind, body)
	}
}

// half is a stream up to a place in the middle of an event.
func half(stream string) string { return stream[:len(stream)/2] }

func unavailable(name string, code int, header ...string) fault {
	return fault{
		name: name, serve: status(code, jsonKind, busy, header...),
		kind: model.ErrUnavailable, status: code, attempts: five, says: moment,
	}
}

// faults are all of them, but for those that need no server.
func faults() []fault { return append(append(refusals(), breaks()...), silences()...) }

// refusals are answers that are errors from the start.
func refusals() []fault {
	return []fault{
		unavailable("408", 408),
		unavailable("409", 409),
		unavailable("429", 429),
		unavailable("429 with retry-after-ms", 429, "Retry-After-Ms", "7.5", "Retry-After", "3600"),
		{
			name: "429 with a long Retry-After", serve: status(429, jsonKind, busy, "Retry-After", "61"),
			kind: model.ErrUnavailable, status: 429, attempts: 1, says: moment, after: 61 * time.Second,
		},
		unavailable("500", 500),
		unavailable("503", 503),
		unavailable("529", 529),
		{name: "502 of a proxy", serve: status(502, htmlKind, page), kind: model.ErrUnavailable, status: 502, attempts: five, says: "Bad Gateway"},
		{name: "a page", serve: status(200, htmlKind, page), kind: model.ErrUnavailable, attempts: five, says: "text/html where a stream of events was expected: is the base URL right?"},
		{name: "JSON of another kind", serve: status(200, jsonKind, `{"hello":"world"}`), kind: model.ErrUnavailable, attempts: five, says: "application/json"},
		{name: "an error with 200", serve: status(200, jsonKind, busy), kind: model.ErrUnavailable, attempts: five, says: moment},
		{name: "400", serve: status(400, jsonKind, busy), kind: model.ErrRefused, status: 400, attempts: 1, says: moment},
		{name: "404 of no API", serve: status(404, "text/plain", "404 page not found\n"), kind: model.ErrRefused, status: 404, attempts: 1, says: "404 page not found: is the base URL right?"},
		{name: "a redirect", serve: status(307, "text/plain", "", "Location", "https://elsewhere.test/v2?x=y"), kind: model.ErrRefused, status: 307, attempts: 1, says: "https://elsewhere.test/v2: change the base URL"},
		{name: "an endless error", serve: status(400, "text/plain", strings.Repeat(Key+"\n", 10_000)), kind: model.ErrRefused, status: 400, attempts: 1, says: "[key] [key]"},
		{name: "401", serve: func(p Provider, _ *Server, w http.ResponseWriter, _ *http.Request) {
			fail(w, 401, jsonKind, p.WrongKey)
		}, kind: model.ErrRefused, status: 401, attempts: 1, says: "API key"},
		{name: "no such model", serve: func(p Provider, _ *Server, w http.ResponseWriter, _ *http.Request) { fail(w, 404, jsonKind, p.NoModel) }, kind: model.ErrRefused, status: 404, attempts: 1, says: "some-model"},
		{name: "too long", serve: func(p Provider, _ *Server, w http.ResponseWriter, _ *http.Request) { fail(w, 400, jsonKind, p.TooLong) }, kind: model.ErrTooLong, status: 400, attempts: 1, says: "tokens"},
		{name: "a body too large", serve: status(413, htmlKind, page), kind: model.ErrTooLong, status: 413, attempts: 1, says: "Too Large"},
	}
}

// breaks are streams that are no answers.
func breaks() []fault {
	stream := func(text func(Provider) string) func(Provider, *Server, http.ResponseWriter, *http.Request) {
		return func(p Provider, _ *Server, w http.ResponseWriter, _ *http.Request) { send(w, text(p)) }
	}
	return []fault{
		{name: "a reset", serve: reset, kind: model.ErrUnavailable, attempts: five, says: "connection"},
		{name: "an empty stream", serve: stream(func(Provider) string { return "" }), kind: model.ErrUnavailable, attempts: five, says: "in the middle"},
		{name: "only comments", serve: stream(func(Provider) string { return strings.Repeat(": keep-alive\n\n", 1000) }), kind: model.ErrUnavailable, attempts: five, says: "in the middle"},
		{name: "an end in the middle", serve: stream(func(p Provider) string { return cut(p.Good) }), kind: model.ErrUnavailable, attempts: five, says: "in the middle"},
		{name: "an end inside of an event", serve: stream(func(p Provider) string { return half(p.Good) }), kind: model.ErrUnavailable, attempts: five, says: "the answer"},
		{name: "a reset in the middle", serve: func(p Provider, s *Server, w http.ResponseWriter, r *http.Request) {
			send(w, half(p.Good))
			reset(p, s, w, r)
		}, kind: model.ErrUnavailable, attempts: five, says: "the answer"},
		{name: "bad JSON", serve: stream(func(p Provider) string { return p.BadJSON }), kind: model.ErrUnavailable, attempts: five, says: "JSON that cannot be understood"},
		{name: "an error in the middle", serve: func(p Provider, _ *Server, w http.ResponseWriter, _ *http.Request) { send(w, p.Overloaded) }, kind: model.ErrUnavailable, attempts: five, says: "Why"},
		{name: "a line without end", serve: longLine, kind: model.ErrUnavailable, attempts: 2, heavy: true, says: "line longer than 4194304 bytes"},
		{name: "an answer without end", serve: longAnswer, kind: model.ErrUnavailable, attempts: 2, heavy: true, says: "longer than 16777216 bytes"},
		{name: "byte by byte", serve: drip, attempts: 1},
	}
}

// silences are answers that do not come.
func silences() []fault {
	return []fault{
		{name: "silence", serve: func(_ Provider, s *Server, _ http.ResponseWriter, r *http.Request) { s.hang(r) }, kind: model.ErrUnavailable, attempts: five, says: "no answer for 200ms", silent: true},
		{name: "silence after the header", serve: func(_ Provider, s *Server, w http.ResponseWriter, r *http.Request) {
			send(w, "")
			s.hang(r)
		}, kind: model.ErrUnavailable, attempts: five, says: "no answer for 200ms", silent: true},
		{name: "silence in the middle", serve: func(p Provider, s *Server, w http.ResponseWriter, r *http.Request) {
			send(w, half(p.Good))
			s.hang(r)
		}, kind: model.ErrUnavailable, attempts: five, says: "no byte for 200ms", silent: true},
		{name: "silence in an error", serve: func(_ Provider, s *Server, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			write(w, "half a")
			s.hang(r)
		}, kind: model.ErrUnavailable, status: 500, attempts: five, says: "half a", silent: true},
	}
}

// cut is a stream up to an event in the middle.
func cut(stream string) string {
	first := half(stream)
	return first[:strings.LastIndex(first, "\n\n")+2]
}

func reset(_ Provider, s *Server, w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	s.reach()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func longLine(p Provider, s *Server, w http.ResponseWriter, _ *http.Request) {
	send(w, p.LongLine)
	block := strings.Repeat("x", 1<<20)
	for n := 0; n < huge && write(w, block); n += len(block) {
		s.reach()
	}
}

func longAnswer(p Provider, s *Server, w http.ResponseWriter, _ *http.Request) {
	send(w, p.Begin)
	for block := p.Piece(strings.Repeat("x", wire.MaxAnswer/8)); write(w, block); {
		s.reach()
	}
}

func drip(p Provider, s *Server, w http.ResponseWriter, _ *http.Request) {
	send(w, "")
	for i := range len(p.Good) {
		if !write(w, p.Good[i:i+1]) {
			return
		}
		if i == len(p.Good)/2 {
			s.reach()
		}
	}
}

// tune is the configuration for a fault.
func (f fault) tune(cfg *wire.Config) {
	if f.silent {
		cfg.FirstByte, cfg.BetweenBytes = brief, brief
	}
	if f.heavy {
		cfg.Retry.Attempts = 2
	}
}
