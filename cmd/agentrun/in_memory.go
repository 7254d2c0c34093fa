package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// inMemory carries requests to a handler without a network. The answer is
// handed on as the handler writes it, however long it is.
type inMemory struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. The handler has ended once the body
// was read to its end or is closed.
func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	served := r.Clone(r.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	out, in := io.Pipe()
	a := &memoryAnswer{header: http.Header{}, body: in, begun: make(chan struct{})}
	body := &memoryBody{PipeReader: out, ended: make(chan struct{})}
	go func() {
		defer close(body.ended)
		_ = in.CloseWithError(a.serve(m.handler, served))
	}()
	body.uncancel = context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
	<-a.begun
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: r.Proto, Request: r,
		Header: a.sent, ContentLength: a.length(), Body: body,
	}, nil
}

// memoryAnswer is the http.ResponseWriter of inMemory.
type memoryAnswer struct {
	header http.Header
	body   *io.PipeWriter

	begin  sync.Once
	begun  chan struct{} // closed once what follows is there
	status int
	sent   http.Header
}

// serve calls the handler and returns what the body ends with: nil, or an
// error when the handler broke the answer off, as a connection would have.
func (a *memoryAnswer) serve(handler http.Handler, r *http.Request) (err error) {
	defer a.WriteHeader(http.StatusOK)
	defer func() {
		switch broken := recover(); broken {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			panic(broken)
		}
	}()
	handler.ServeHTTP(a, r)
	return nil
}

// Header implements http.ResponseWriter.
func (a *memoryAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. Only the first call counts.
func (a *memoryAnswer) WriteHeader(status int) {
	a.begin.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Write implements http.ResponseWriter.
func (a *memoryAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// length is that of the body as far as it was announced, else -1.
func (a *memoryAnswer) length() int64 {
	n, err := strconv.ParseInt(a.sent.Get("Content-Length"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// memoryBody is what the client reads.
type memoryBody struct {
	*io.PipeReader
	uncancel func() bool
	ended    chan struct{} // closed when the handler has ended
}

// Close implements io.Closer. It waits for the handler, which notices when it
// writes.
func (b *memoryBody) Close() error {
	b.uncancel()
	err := b.PipeReader.Close()
	<-b.ended
	return err
}
