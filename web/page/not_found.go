package page

import (
	"maps"
	"net/http"
	"strings"
)

// withNotFound gives browsers a page where next has nothing. The APIs answer
// for themselves: what reads them is a program, also with a browser's headers.
func (a *App) withNotFound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isAPI := strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/api/")
		if r.Method != http.MethodGet || isAPI || !strings.Contains(r.Header.Get("Accept"), "text/html") {
			next.ServeHTTP(w, r)
			return
		}
		before := w.Header().Clone()
		watched := &notFoundWriter{ResponseWriter: w}
		next.ServeHTTP(watched, r)
		if !watched.notFound {
			return
		}
		clear(w.Header())
		maps.Copy(w.Header(), before)
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		a.fail(w, r, nil, refuse(http.StatusNotFound, "There is nothing at this address."))
	})
}

// notFoundWriter holds back an answer that says 404.
type notFoundWriter struct {
	http.ResponseWriter
	started, notFound bool
}

func (w *notFoundWriter) WriteHeader(status int) {
	w.notFound = w.notFound || !w.started && status == http.StatusNotFound
	w.started = w.started || status >= http.StatusOK
	if !w.notFound {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *notFoundWriter) Write(body []byte) (int, error) {
	w.started = true
	if w.notFound {
		return len(body), nil
	}
	return w.ResponseWriter.Write(body)
}

// Unwrap lets an http.ResponseController flush the answer.
func (w *notFoundWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
