package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/gen"
	"agentrun/poll"
)

const (
	// connectTime bounds connecting, and TLS on top of it.
	connectTime = 30 * time.Second
	// headerTime bounds the wait for the header of an answer, after the whole
	// request was sent. A server may sync many files to a slow disk.
	headerTime = 5 * time.Minute
	// createTime bounds a POST as a whole; its 14 MB may go over a slow line.
	createTime = 30 * time.Minute
	// longBody is the length of a request body, in bytes, above which the server
	// is asked first: the answer to a refused one would be lost with the
	// connection that the server closes while the body is still being sent.
	longBody = 64 << 10
	// askTime is how long a server that was asked may be silent before the body
	// is sent all the same: not everyone answers.
	askTime = time.Second
	// maxKeyFile bounds a file with a key, in bytes.
	maxKeyFile = 64 << 10
)

// api is the public API as an agent's key sees it.
type api struct {
	url      string
	key      poll.Key
	template uuid.UUID
}

// apiOf reads the flags that say where the API is and who asks.
func apiOf(cmd *cli.Command) (*api, error) {
	address, err := required(cmd, "url")
	if err != nil {
		return nil, err
	}
	if err := checkURL("--url", address); err != nil {
		return nil, err
	}
	key, err := keyOf(cmd)
	if err != nil {
		return nil, err
	}
	text, err := required(cmd, "template")
	if err != nil {
		return nil, err
	}
	template, err := uuid.Parse(text)
	if err != nil {
		return nil, misuse(fmt.Sprintf("--template %q: want the ID of an agent, a UUID", text))
	}
	return &api{strings.TrimRight(address, "/"), key, template}, nil
}

func required(cmd *cli.Command, flag string) (string, error) {
	if value := cmd.String(flag); value != "" {
		return value, nil
	}
	twins := env(flag)
	return "", misuse(fmt.Sprintf("--%s is missing, and so is %s", flag, strings.Join(twins.EnvKeys(), ", ")))
}

// checkURL refuses what is no address of a server; flag is where it is from.
func checkURL(flag, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return misuse(flag + ": want http://HOST or https://HOST")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return misuse(flag + ": want no user, no query and no fragment in it")
	}
	return nil
}

// keyOf reads the key from its flag or from its file. No error quotes it.
func keyOf(cmd *cli.Command) (poll.Key, error) {
	path := cmd.String("key-file")
	if path == "" {
		key, err := required(cmd, "key")
		if err == nil && !isKey(key) {
			err = misuse("--key: that is no API key")
		}
		return poll.Key(key), err
	}
	if cmd.String("key") != "" {
		return "", misuse("--key and --key-file, or their variables, exclude one another")
	}
	key, err := secretIn(path, "API key")
	return poll.Key(key), err
}

// secretIn reads the file of a secret, which what names.
func secretIn(path, what string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(raw))
	if !isKey(secret) {
		return "", errors.Errorf("%s: there is no %s in it", path, what)
	}
	return secret, nil
}

// isKey says whether a text could be a key: something that goes into a header.
func isKey(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// client makes a client of the API. kept holds the body of its last good answer.
func (a *api) client(transport http.RoundTripper) (client *gen.Client, kept *keptBody, err error) {
	kept = &keptBody{next: transport}
	doer := &http.Client{
		Transport: kept,
		// A redirected POST would be a second one, and a key goes nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client, err = gen.NewClient(a.url, a.key, gen.WithClient(poll.KeepStatus(doer)))
	return client, kept, err
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTime}).DialContext,
		TLSHandshakeTimeout:   connectTime,
		ResponseHeaderTimeout: headerTime,
		ExpectContinueTimeout: askTime,
	}
}

// create sends the POST, once, and returns the ID of the run and the answer as
// it came.
func (a *api) create(ctx context.Context, request *gen.PublicCreateAgentRequest) (run uuid.UUID, answer []byte, err error) {
	transport := newTransport()
	// A connection of its own and HTTP/1.1: a transport repeats a request by
	// itself only on a connection that it used before, and over HTTP/2.
	transport.DisableKeepAlives = true
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	client, kept, err := a.client(sendOnce{transport})
	if err != nil {
		return uuid.Nil, nil, err
	}
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	bounded, cancel := context.WithTimeout(traced, createTime)
	defer cancel()
	res, err := client.CreateAgent(bounded, request)
	if created, ok := res.(*gen.PublicCreateAgentResponse); err == nil && ok {
		return created.AgentID, kept.body, nil
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return uuid.Nil, nil, createError(err, connected.Load())
}

// createError says what a POST that created nothing that is known of may have
// left behind.
func createError(err error, connected bool) error {
	const mayExist = "the run may exist all the same: look with 'agentrun runs list' on the server before you start another"
	var answer *poll.StatusError
	switch {
	case errors.As(err, &answer) && answer.Status < http.StatusBadRequest:
		return errors.Errorf("create run: %w; check --url, nothing is sent twice", answer)
	case errors.As(err, &answer) && answer.Status < http.StatusInternalServerError:
		return errors.Wrap(answer, "create run")
	case errors.As(err, &answer):
		return errors.Errorf("create run: %w; %s", answer, mayExist)
	case !connected:
		return errors.Errorf("create run: %w; nothing was sent", cause(err))
	default:
		return errors.Errorf("create run: %w; %s", cause(err), mayExist)
	}
}

// cause is an error of an HTTP client without the request it was about.
func cause(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

// sendOnce carries a POST whose body cannot be sent a second time.
type sendOnce struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s sendOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.GetBody = nil
	if r.ContentLength > longBody {
		r.Header.Set("Expect", "100-continue")
	}
	return s.next.RoundTrip(r)
}

// keptBody carries requests, one at a time, and keeps the body of the last
// answer 2xx.
type keptBody struct {
	next http.RoundTripper
	body []byte
}

// RoundTrip implements http.RoundTripper.
func (k *keptBody) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(r)
	if err != nil || resp.StatusCode/100 != 2 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, errors.Wrap(err, "the answer broke off")
	}
	k.body, resp.Body = body, io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
