package main

import (
	"context"
	"net"
	"net/http"
	"os"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"

	"agentrun/web"
	"agentrun/web/gen"
)

// withManagement calls do with a client of the management API: that of the
// server which has the data directory, or, when there is none, of the same
// handler called in memory over the directory opened for that long.
func withManagement(ctx context.Context, cmd *cli.Command, do func(*gen.Client) error) (err error) {
	dir := cmd.String("data")
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
	handler, err := web.NewManagement(web.Config{Store: data.store, Workspaces: data.spaces, Offline: true, Log: log})
	if err != nil {
		return err
	}
	defer data.erase(log)()
	return withClient(inMemory{handler}, do)
}

func withClient(transport http.RoundTripper, do func(*gen.Client) error) error {
	client, err := gen.NewClient("http://agentrun", gen.WithClient(&http.Client{Transport: transport}))
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
