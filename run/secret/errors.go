package secret

import "github.com/go-faster/errors"

var (
	// ErrMissing says that secrets are neither in the directory nor in the
	// server's environment. The text names all of them, and where they were
	// looked for; it is for the agent's owner and holds no value.
	ErrMissing = errors.New("secrets missing")

	// ErrUnusable says that the directory or a secret is there and is refused
	// or cannot be read. The text says which file or variable it is, and why;
	// it holds no value.
	ErrUnusable = errors.New("secrets unusable")
)

// errClosed says that a Masker was written to after Close: what it was closed
// with might have been the first half of a secret.
var errClosed = errors.New("write to a closed masker")

// unusable is ErrUnusable about a file or a variable.
func unusable(what, why string) error {
	return errors.Errorf("%w: %s: %s", ErrUnusable, what, why)
}
