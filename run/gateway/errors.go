package gateway

import (
	"net/http"

	"github.com/go-faster/errors"
)

// ErrAllow says that an entry of Config.Allow is no host that can be allowed.
// New returns it, with the entry and the reason.
var ErrAllow = errors.New("no host that can be allowed")

// ErrRefused says that a request of a Client got no answer: the agent file does
// not allow where it leads, or there is no way there. The text says why, and
// holds no address of the server's network.
var ErrRefused = errors.New("refused")

// ErrProvider says that an entry of Models.Providers cannot be used. New returns
// it, with the name and the reason.
var ErrProvider = errors.New("no provider that can be used")

// Why an answer of a provider is kept from the program that asked.
var (
	errRedirect = errors.New("it sends to another address, which is not followed")
	errKey      = errors.New("it does not accept the key that the server has for it")
	errNoAnswer = errors.New("it gave no answer")
)

// refusal is why a request gets no connection. The mistake is the client's or
// the other side's, so it is an answer and not an error of ours.
type refusal struct {
	status int
	why    string
}

func refuse(status int, why string) *refusal { return &refusal{status: status, why: why} }

// allowed says whether the agent file allows what was refused all the same.
func (r *refusal) allowed() bool { return r.status >= http.StatusInternalServerError }
