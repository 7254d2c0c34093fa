package page

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"agentrun/web/asset"
)

// maxForm bounds the body of a request; an agent file is the largest part of
// one.
const maxForm = 2 << 20

// securityHeaders are on every answer of the application.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src " + asset.StylePolicy() + "; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options": "nosniff",
	// No other site learns an address of ours. With no-referrer, browsers would
	// send the forms of our own pages with "Origin: null" as well, and where there
	// is no https, nothing else tells them from the forms of other sites.
	"Referrer-Policy":              "same-origin",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}

// protect is the outermost handler. What is no path of the application's goes
// to next as it came.
func (a *App) protect(next http.Handler) http.Handler {
	hosts := a.hosts()
	var crossOrigin http.CrossOriginProtection
	next = a.withNotFound(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.owns(r) {
			next.ServeHTTP(w, r)
			return
		}
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if !allowedHost(r.Host, hosts) {
			a.fail(w, r, nil, refuse(http.StatusMisdirectedRequest, "This server does not answer to the name in the address. "+
				"Whoever operates it can allow a name by starting it with --base-url and the address that people use."))
			return
		}
		if err := a.checkOrigin(r, &crossOrigin); err != nil {
			a.fail(w, r, nil, err)
			return
		}
		a.mux.ServeHTTP(w, r)
	})
}

// owns says whether the path is one of the application's, with any method.
func (a *App) owns(r *http.Request) bool {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		asked := &http.Request{Method: method, Host: r.Host, URL: &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}}
		if _, pattern := a.mux.Handler(asked); pattern != "" {
			return true
		}
	}
	return false
}

// checkOrigin refuses what changes something and does not come from one of our
// own pages. Only browsers say where a request comes from, and they always do:
// what says nothing is a program, and must have a session of its own.
func (a *App) checkOrigin(r *http.Request, crossOrigin *http.CrossOriginProtection) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return nil
	}
	elsewhere := refuse(http.StatusForbidden, "The request did not come from a page of this server, so nothing was done. "+
		"Open the page here and try again.")
	if crossOrigin.Check(r) != nil {
		return elsewhere
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		if _, err := a.actor(r); err != nil {
			return elsewhere
		}
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/x-www-form-urlencoded" {
		return refuse(http.StatusUnsupportedMediaType, "A form is sent as application/x-www-form-urlencoded.")
	}
	return nil
}

// hosts are the names that the server may be reached by, besides addresses.
func (a *App) hosts() map[string]bool {
	hosts := map[string]bool{"localhost": true}
	if base, err := url.Parse(a.cfg.BaseURL); err == nil && base.Hostname() != "" {
		hosts[strings.ToLower(base.Hostname())] = true
	}
	for _, host := range a.cfg.Hosts {
		hosts[strings.ToLower(host)] = true
	}
	return hosts
}

// allowedHost says whether a request may name this host, with any port. A page
// from elsewhere can have its own name point at this server, and its requests
// are then same-origin with ours; it cannot have an address for its name.
func allowedHost(host string, names map[string]bool) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return false
		}
		host = name
	} else if bare, bracketed := strings.CutPrefix(host, "["); bracketed {
		var closed bool
		if host, closed = strings.CutSuffix(bare, "]"); !closed {
			return false
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return names[strings.ToLower(host)]
}
