package reference

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// get asks the handler for a path.
func get(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return recorder
}

func TestAnswers(t *testing.T) {
	handler := New([]byte(`{"of":"all"}`), []byte(`{"of":"operators"}`))
	for path, want := range map[string]struct{ contentType, part string }{
		"/docs/api":                     {"text/html; charset=utf-8", `<a href="/docs/api" aria-current="page">Public API</a>`},
		"/docs/api?contract=public":     {"text/html; charset=utf-8", `data-contract="/docs/api/public.json"`},
		"/docs/api?contract=<script>":   {"text/html; charset=utf-8", `data-contract="/docs/api/public.json"`},
		"/docs/api?contract=management": {"text/html; charset=utf-8", `data-contract="/docs/api/management.json"`},
		"/docs/api/public.json":         {"application/json", `{"of":"all"}`},
		"/docs/api/management.json":     {"application/json", `{"of":"operators"}`},
	} {
		res := get(t, handler, path)
		if res.Code != http.StatusOK || !strings.Contains(res.Body.String(), want.part) {
			t.Errorf("%s: status %d, without %s:\n%s", path, res.Code, want.part, res.Body)
		}
		headers := http.Header{
			"Content-Type":                 {want.contentType},
			"Content-Security-Policy":      {policy},
			"X-Content-Type-Options":       {"nosniff"},
			"Cross-Origin-Resource-Policy": {"same-origin"},
			"Referrer-Policy":              {"no-referrer"},
			"Cache-Control":                {"no-store"},
		}
		if diff := cmp.Diff(headers, res.Header()); diff != "" {
			t.Errorf("%s: headers (-want +got):\n%s", path, diff)
		}
	}
	if to := get(t, handler, "/docs/api/").Header().Get("Location"); to != "/docs/api" {
		t.Errorf("/docs/api/ leads to %q", to)
	}
	for _, path := range []string{"/docs/api/index.html", "/docs/api/0000000000000000/reference.js", "/docs/api/page.html", "/docs"} {
		if status := get(t, handler, path).Code; status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

func TestPageLinksWhatIsThere(t *testing.T) {
	handler := New([]byte("{}"), []byte("{}"))
	html := get(t, handler, "/docs/api").Body.Bytes()
	links := regexp.MustCompile(`(?:href|src)="(/docs/[^"]*)"`).FindAllSubmatch(html, -1)
	if len(links) < 9 {
		t.Fatalf("%d links in\n%s", len(links), html)
	}
	for _, link := range links {
		if res := get(t, handler, string(link[1])); res.Code != http.StatusOK || res.Body.Len() == 0 {
			t.Errorf("%s: status %d, %d bytes", link[1], res.Code, res.Body.Len())
		}
	}
	if bytes.Contains(html, []byte("://")) {
		t.Errorf("the page names another server:\n%s", html)
	}
}
