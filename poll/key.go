package poll

import (
	"context"

	"github.com/ogen-go/ogen/ogenerrors"

	"agentrun/gen"
)

// Key is an API key as gen.NewClient takes it. It is sent in the preferred
// way, `Authorization: Bearer`, and does not print itself.
type Key string

var _ gen.SecuritySource = Key("")

// BearerKey implements gen.SecuritySource.
func (k Key) BearerKey(context.Context, gen.OperationName) (gen.BearerKey, error) {
	return gen.BearerKey{Token: string(k)}, nil
}

// HeaderKey implements gen.SecuritySource: the key is not sent twice.
func (k Key) HeaderKey(context.Context, gen.OperationName) (gen.HeaderKey, error) {
	return gen.HeaderKey{}, ogenerrors.ErrSkipClientSecurity
}

// String implements fmt.Stringer without the key.
func (k Key) String() string { return "(an API key)" }

// GoString implements fmt.GoStringer without the key.
func (k Key) GoString() string { return "poll.Key(…)" }
