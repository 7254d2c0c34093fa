package tool

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-faster/errors"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"agentrun/storage/workspace"
)

// logFolder is the part of a workspace that is ours, where the texts are that
// are too long for a model.
const logFolder = ".agentrun"

// maxLog bounds what is kept of a result in a file. It counts as the run's.
const maxLog = 1 << 20

// report takes what a tool has to say: masked, as UTF-8 and within bounds,
// however much is written.
type report struct {
	place  *Place
	kept   *kept
	text   io.WriteCloser // makes UTF-8 of what comes, for kept
	masked io.WriteCloser // hides secrets in what comes, for text
	mu     sync.Mutex     // for those who write at the same time

	// end follows the text whatever is left out of that. It holds no more than
	// the tool's own words and numbers.
	end    string
	failed bool
}

func newReport(p *Place) *report {
	r := &report{place: p, kept: newKept(maxLog)}
	r.text = transform.NewWriter(r.kept, unicode.UTF8.NewDecoder())
	r.masked = unmasked{r.text}
	if p.Mask != nil {
		r.masked = p.Mask(r.text)
	}
	return r
}

// unmasked hides nothing, and has nothing to close.
type unmasked struct{ io.Writer }

// Close implements io.Closer.
func (unmasked) Close() error { return nil }

// Write implements io.Writer. It takes everything.
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.masked.Write(p)
}

// say adds to the text.
func (r *report) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r, format, args...) // It takes everything.
}

// fail says why nothing, or not everything, was done.
func (r *report) fail(format string, args ...any) {
	r.failed = true
	r.say(format, args...)
}

// failFile says what is wrong with a file, unless err is a fault of our own,
// which it returns.
func (r *report) failFile(err error) error {
	for _, known := range []error{
		workspace.ErrInvalidPath, workspace.ErrNoFile, workspace.ErrFileRefused, workspace.ErrCutShort, workspace.ErrNoSpace,
	} {
		if errors.Is(err, known) {
			r.fail("%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("workspace %s: ", r.place.Run)))
			return nil
		}
	}
	return err
}

// finish returns the text for the model, at most as long as the place allows.
func (r *report) finish(callID string) (string, error) {
	for _, w := range []io.Closer{r.masked, r.text} {
		if err := w.Close(); err != nil {
			return "", err
		}
	}
	limit := r.place.maxResult() - len(r.end)
	if r.kept.total <= int64(limit) {
		return r.kept.text() + r.end, nil
	}
	where, err := r.log(callID)
	if err != nil {
		return "", err
	}
	return r.kept.shorten(limit, where) + r.end, nil
}

// log keeps the text in the workspace, and says where.
func (r *report) log(callID string) (string, error) {
	path := logFolder + "/tool-" + fileName(callID) + ".txt"
	switch err := r.place.Workspaces.WriteFile(r.place.Run, path, []byte(r.kept.text()), r.place.Sandbox.Owner()); {
	case errors.Is(err, workspace.ErrFileRefused), errors.Is(err, workspace.ErrNoFile), errors.Is(err, workspace.ErrNoSpace):
		return "and could not be kept in " + logFolder, nil
	case err != nil:
		return "", err
	case r.kept.leftOut() > 0:
		return fmt.Sprintf("the first and the last %d bytes are in %s", maxLog/2, path), nil
	}
	return "the whole is in " + path, nil
}

// fileName is a call's ID as a part of a file's name. Providers choose these IDs;
// of those that are no plain names two never have the same one.
func fileName(callID string) string {
	const most = 64
	name := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, callID)
	if name == callID && len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s-%x", name[:min(len(name), most)], sha256.Sum256([]byte(callID)))[:min(len(name), most)+17]
}
