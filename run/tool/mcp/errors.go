package mcp

import "github.com/go-faster/errors"

var (
	// errClosed is why a call has no result after, or because of, Close.
	errClosed = errors.New("the tool servers are closed")
	// errNoHosts is why a server elsewhere is not reached without an HTTP client.
	errNoHosts = errors.New("the agent file allows no network hosts, so no server can be reached by its URL")
	// errTooLong is why a server is given up that sends a message beyond
	// maxMessage.
	errTooLong = errors.Errorf("it sent a message of more than %d MiB", maxMessage>>20)
	// errNotRead is why a server is given up that does not read what it is sent.
	errNotRead = errors.New("it does not read its standard input")
	// errRestarts is why a server that was lost too often is not connected to again.
	errRestarts = errors.Errorf("it was connected to anew %d times in this turn already", maxRestarts)
)
