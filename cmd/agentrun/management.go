package main

import (
	"context"
	"net"
	"net/http"
	"os"

	"github.com/go-faster/errors"
	"github.com/ogen-go/ogen/ogenerrors"
	"github.com/urfave/cli/v3"

	"agentrun/web"
	"agentrun/web/gen"
)

// maxPage is the most that the management API lists at once.
const maxPage = 1000

// withManagement calls do with a client of the management API: over HTTP that of
// --server; else that of the server which has the data directory, or, when there
// is none, of the same handler called in memory over the directory opened for
// that long.
func withManagement(ctx context.Context, cmd *cli.Command, do func(*gen.Client) error) error {
	server, err := remoteOf(cmd)
	if err != nil {
		return err
	}
	if server != nil {
		return server.call(ctx, os.Stderr, do)
	}
	return withData(ctx, cmd.String("data"), do)
}

// withData calls do with a client of the management API of a data directory.
func withData(ctx context.Context, dir string, do func(*gen.Client) error) (err error) {
	conn, err := dialSocket(ctx, dir)
	if err == nil {
		_ = conn.Close()
		return withClient(&http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, dir) },
		}, do)
	}
	if errors.Is(err, os.ErrPermission) {
		return errors.Wrap(err, "the server of this data directory")
	}
	log := newLog()
	data, err := openData(ctx, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.close()) }()
	handler, err := web.NewManagement(web.Config{
		Store: data.store, Workspaces: data.spaces, Offline: true, Version: buildVersion(), Log: log,
	}).Local()
	if err != nil {
		return err
	}
	defer data.erase(log)()
	return withClient(inMemory{handler}, do)
}

// noToken is for where the way to the management API is the authorisation.
type noToken struct{}

// PersonalToken implements gen.SecuritySource.
func (noToken) PersonalToken(context.Context, gen.OperationName) (gen.PersonalToken, error) {
	return gen.PersonalToken{}, ogenerrors.ErrSkipClientSecurity
}

func withClient(transport http.RoundTripper, do func(*gen.Client) error) error {
	client, err := gen.NewClient("http://agentrun", noToken{}, gen.WithClient(&http.Client{Transport: transport}))
	if err != nil {
		return err
	}
	err = do(client)
	var problem *gen.ProblemStatusCode
	if errors.As(err, &problem) {
		return errors.New(problem.Response.Detail)
	}
	return err
}
