package gateway

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serve answers one request.
func (d *door) serve(w http.ResponseWriter, r *http.Request) {
	d.working.Add(1)
	defer d.working.Done()
	client := r.Context().Value(clientKey{}).(*conn)
	// After the handler, net/http still reads what is left of the body and sends
	// what is left of the answer. It has no time limit for either, and may take a
	// deadline of ours away.
	defer time.AfterFunc(HeaderLimit, func() { _ = client.Close() })

	if len(d.gateway.models) > 0 && r.URL.Scheme == "" && strings.HasPrefix(r.RequestURI, "/") {
		d.serveModel(w, r, client)
		return
	}
	authority, defaultPort, refused := requested(r)
	if refused != nil {
		answer(w, refused)
		return
	}
	t, conn, refused := d.reach(r.Context(), authority, defaultPort)
	if refused != nil {
		answer(w, refused)
		return
	}
	out := newFlow(conn, client)
	defer out.end()
	if r.Method == http.MethodConnect {
		tunnel(w, out)
		return
	}
	forward(w, r, t, out)
}

// requested says where a request wants to go: host:port, or host with the port
// that is meant without one.
func requested(r *http.Request) (authority string, defaultPort uint16, refused *refusal) {
	switch {
	case r.Method == http.MethodConnect && r.ContentLength != 0:
		return "", 0, refuse(http.StatusBadRequest, "CONNECT has no body")
	case r.Method == http.MethodConnect:
		// What was sent and not what net/url made of it.
		return r.RequestURI, 0, nil
	case r.URL.Scheme == "http" && r.URL.Host != "" && r.URL.User == nil:
		return r.URL.Host, portHTTP, nil
	}
	return "", 0, refuse(http.StatusBadRequest, "this is a proxy: it takes CONNECT host:443 and requests for http://host/, without a user name")
}

// answer refuses a request, in one line of text.
func answer(w http.ResponseWriter, r *refusal) {
	text := "agentrun: " + r.why + "\n"
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, text) // The client may have left.
}
