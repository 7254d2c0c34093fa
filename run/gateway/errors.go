package gateway

import (
	"net/http"

	"github.com/go-faster/errors"
)

// ErrAllow says that an entry of Config.Allow is no host that can be allowed.
// New returns it, with the entry and the reason.
var ErrAllow = errors.New("no host that can be allowed")

// refusal is why a request gets no connection. The mistake is the client's or
// the other side's, so it is an answer and not an error of ours.
type refusal struct {
	status int
	why    string
}

func refuse(status int, why string) *refusal { return &refusal{status: status, why: why} }

// allowed says whether the agent file allows what was refused all the same.
func (r *refusal) allowed() bool { return r.status >= http.StatusInternalServerError }
