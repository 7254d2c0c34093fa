// Package modeltest has the tests that every client of a model provider has to
// pass: a server on the loopback that plays recorded answers and everything that
// can go wrong with them, and a clock that goes as fast as one likes. Only tests
// may import it.
package modeltest

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

// Key is the key that clients are given. The servers say it back in their errors.
const Key = "sk-test-5f3c9a7d1e2b4860-not-a-real-key"

// limit is how long a call may last after its context ended.
const limit = time.Second

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// Provider is what the tests need to know of a client.
type Provider struct {
	New func(wire.Config) (model.Client, error)
	// Good is a stream whose answer has the text Said.
	Good, Said string
	// BadArguments is a stream with one call whose arguments are no JSON.
	BadArguments, Arguments string
	// Overloaded is a stream that has an error in the middle, and Why what it
	// says.
	Overloaded, Why string
	// BadJSON is a stream with an event that cannot be decoded.
	BadJSON string
	// LongLine begins an event that never ends.
	LongLine string
	// Begin begins an answer, and Piece is an event with more of its text.
	Begin string
	Piece func(text string) string
	// WrongKey, NoModel and TooLong are the bodies of errors.
	WrongKey, NoModel, TooLong string
}

// Request is what the tests ask.
func Request() model.Request {
	return model.Request{
		Model:    "some-model",
		Messages: []model.Message{{Role: model.RoleUser, Text: "Hello"}},
	}
}

// client returns a client that waits for hardly anything between attempts, and
// closes its connections when the test ends.
func (p Provider) client(t *testing.T, base string, tune func(*wire.Config)) model.Client {
	t.Helper()
	transport := wire.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	cfg := wire.Config{BaseURL: base, Key: Key, Transport: transport, Retry: model.Retry{First: time.Millisecond}}
	if tune != nil {
		tune(&cfg)
	}
	c, err := p.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Play lets a client call a server that answers with one stream, and returns the
// answer and the request.
func Play(t *testing.T, p Provider, stream string, req model.Request) (model.Answer, *Server) {
	t.Helper()
	server := Serve(t, func(w http.ResponseWriter, _ *http.Request) { send(w, stream) })
	answer, err := p.client(t, server.URL, nil).Call(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Attempts != 1 || server.Hits() != 1 {
		t.Errorf("%d attempts, %d requests", answer.Attempts, server.Hits())
	}
	return answer, server
}

// Fails lets a client call a server that answers with one stream, which is an
// error, and checks that.
func Fails(t *testing.T, p Provider, stream string, kind error, says string) *model.Error {
	t.Helper()
	server := Serve(t, func(w http.ResponseWriter, _ *http.Request) { send(w, stream) })
	_, err := p.client(t, server.URL, nil).Call(t.Context(), Request())
	failed := failedAs(t, err, kind, says)
	if failed.Attempts != server.Hits() {
		t.Errorf("%d attempts, %d requests", failed.Attempts, server.Hits())
	}
	return failed
}

// Refuses checks that a client does not even send a request.
func Refuses(t *testing.T, p Provider, req model.Request, says string) {
	t.Helper()
	server := Serve(t, func(w http.ResponseWriter, _ *http.Request) { send(w, p.Good) })
	_, err := p.client(t, server.URL, nil).Call(t.Context(), req)
	_ = failedAs(t, err, model.ErrRefused, says)
	if server.Hits() != 0 {
		t.Errorf("%d requests", server.Hits())
	}
}

// FewHeaders checks that a request has no header that tells of the machine.
func FewHeaders(t *testing.T, header http.Header) {
	t.Helper()
	for name := range header {
		switch name {
		case "Accept", "Accept-Encoding", "Anthropic-Version", "Authorization", "Content-Length", "Content-Type", "User-Agent", "X-Api-Key":
		default:
			t.Errorf("the request has %s: %s", name, header.Get(name))
		}
	}
}

// keys are the forms of keys that people pay for.
var keys = regexp.MustCompile(`(?i)(sk-|AIza|gsk_|hf_|xai-)[A-Za-z0-9_-]{16,}|bearer |x-api-key`)

// NoKeys hunts for keys in recordings.
func NoKeys(t *testing.T, folder string) {
	t.Helper()
	if !keys.MatchString(Key) {
		t.Error("the hunt would not find a key")
	}
	files, err := filepath.Glob(folder + "/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := keys.Find(text); found != nil {
			t.Errorf("%s has %q in it", name, found)
		}
	}
}
