package main

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

// versionTime bounds the question which version a server has.
const versionTime = 5 * time.Second

// remote is a server that is managed over HTTP, for the owner of a token.
type remote struct{ url, token string }

var _ gen.SecuritySource = (*remote)(nil)

// remoteFlags say which server a management command is for, and who asks.
func remoteFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "server", Sources: env("server"), Validator: notEmpty,
			Usage: "the address of a server to manage over HTTP, such as https://agents.example.org, instead of --data",
		},
		&cli.StringFlag{
			Name: "token", Sources: env("token"), Validator: notEmpty,
			Usage: "a personal access token for --server; others can see it in the list of processes",
		},
		&cli.StringFlag{
			Name: "token-file", Sources: env("token-file"), TakesFile: true, Validator: notEmpty,
			Usage: "a file with the personal access token, instead of --token",
		},
	}
}

// typed says whether a flag was given on the command line, and is not from the
// environment only.
func typed(cmd *cli.Command, flag string) bool {
	if !cmd.IsSet(flag) {
		return false
	}
	twins := env(flag)
	for _, name := range twins.EnvKeys() {
		if cmd.String(flag) == os.Getenv(name) {
			return false
		}
	}
	return true
}

// remoteOf returns the server that the command is for, nil when it is for a data
// directory. What is typed counts for more than what the environment says.
func remoteOf(cmd *cli.Command) (*remote, error) {
	server := cmd.String("server")
	switch {
	case typed(cmd, "server") && typed(cmd, "data"):
		return nil, misuse("--server and --data exclude one another")
	case typed(cmd, "data"):
		server = ""
	}
	if server == "" {
		given := cmd.String("token") != "" || cmd.String("token-file") != ""
		if typed(cmd, "token") || typed(cmd, "token-file") || given && !cmd.IsSet("data") {
			return nil, misuse("a token is for a server: --server is missing, and so is AGENTRUN_SERVER")
		}
		return nil, nil //nolint:nilnil // There is no server, and no error.
	}
	if err := checkURL("--server", server); err != nil {
		return nil, err
	}
	token, err := tokenOf(cmd)
	if err != nil {
		return nil, err
	}
	return &remote{strings.TrimRight(server, "/"), token}, nil
}

// tokenOf reads the token from its flag or from its file. No error quotes it.
func tokenOf(cmd *cli.Command) (string, error) {
	token, path := cmd.String("token"), cmd.String("token-file")
	switch {
	case token != "" && path != "":
		return "", misuse("--token and --token-file, or their variables, exclude one another")
	case path != "":
		return secretIn(path, "personal access token")
	case token == "":
		return "", misuse("--server needs a token: in AGENTRUN_TOKEN, in a file that --token-file or AGENTRUN_TOKEN_FILE names, or with --token")
	case !isKey(token):
		return "", misuse("--token: that is no personal access token")
	}
	return token, nil
}

// PersonalToken implements gen.SecuritySource.
func (r *remote) PersonalToken(context.Context, gen.OperationName) (gen.PersonalToken, error) {
	return gen.PersonalToken{Token: r.token}, nil
}

// call calls do with a client of the server. What the operator should know of
// the way there goes to notes.
func (r *remote) call(ctx context.Context, notes io.Writer, do func(*gen.Client) error) error {
	if where := r.inTheOpen(); where != "" {
		if _, err := fmt.Fprintf(notes, "agentrun: warning: the token goes to %s without encryption; use https\n", where); err != nil {
			return err
		}
	}
	client, err := gen.NewClient(r.url, r, gen.WithClient(&http.Client{
		Transport: ownAnswers{newTransport()},
		// A redirected POST would be a second one, and a token goes nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}))
	if err != nil {
		return err
	}
	if err := do(client); err != nil {
		return r.explain(err)
	}
	return r.noteVersion(ctx, notes, client)
}

// ownAnswers carries requests, and hands on only what the management API can have
// answered.
type ownAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o ownAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json", "application/problem+json", "application/octet-stream", "application/zip":
		return resp, nil
	}
	_ = resp.Body.Close() // Nobody reads it.
	return nil, &strangeError{resp.StatusCode}
}

// strangeError says that somebody else answered.
type strangeError struct{ status int }

func (e *strangeError) Error() string {
	return fmt.Sprintf("that is no agentrun server, it answers with status %d", e.status)
}

// inTheOpen is the host to which everything goes unencrypted over a network;
// empty when it does not.
func (r *remote) inTheOpen() string {
	u, err := url.Parse(r.url)
	if err != nil || u.Scheme == "https" || u.Hostname() == "localhost" {
		return ""
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		return ""
	}
	return u.Hostname()
}

// explain says of an error of a call what the person at the command line needs.
func (r *remote) explain(err error) error {
	var problem *gen.ProblemStatusCode
	var unreachable *url.Error
	var strange *strangeError
	switch {
	case errors.As(err, &problem) && problem.StatusCode == http.StatusUnauthorized:
		return errors.Errorf("%s: the token is refused: it is unknown, has ended, or its user is disabled", r.url)
	case errors.As(err, &problem) && problem.StatusCode == http.StatusForbidden:
		return errors.Errorf("%s: %s", r.url, problem.Response.Detail)
	case errors.As(err, &problem):
		return errors.New(problem.Response.Detail)
	case errors.As(err, &strange):
		return errors.Errorf("%s: %w: check --server", r.url, strange)
	case errors.As(err, &unreachable):
		return errors.Wrapf(unreachable.Err, "%s cannot be reached", r.url)
	}
	return err
}

// noteVersion says when the server is another agentrun than this one. It is
// worth no error.
func (r *remote) noteVersion(ctx context.Context, notes io.Writer, client *gen.Client) error {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	server, err := client.GetServer(ctx)
	if err != nil || server.Version == buildVersion() {
		return nil // What was asked for is done.
	}
	_, err = fmt.Fprintf(notes, "agentrun: warning: the server is agentrun %s, and this is %s\n", printable(server.Version), buildVersion())
	return err
}
