package asset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
)

// answer is what a client got, as it was on the wire.
type answer struct {
	status int
	header http.Header
	length int64 // As the header says it.
	body   []byte
}

// get asks for a path as a client that takes these encodings.
func get(t *testing.T, method, path string, encodings ...string) answer {
	t.Helper()
	server := httptest.NewServer(Handler())
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A header that is set keeps the client from adding one and unzipping.
	req.Header["Accept-Encoding"] = encodings
	res, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, res.ContentLength, body}
}

func TestEveryFileIsServedForGood(t *testing.T) {
	types := map[string]string{
		"agent.js": "text/javascript; charset=utf-8",
		"app.js":   "text/javascript; charset=utf-8",
		"run.js":   "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml; charset=utf-8",
		"htmx.js":  "text/javascript; charset=utf-8",
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(Sizes()))); diff != "" {
		t.Fatalf("the files are not those that were expected (-want +got):\n%s", diff)
	}
	for name, contentType := range types {
		if ok, _ := regexp.MatchString(`^/static/[0-9a-f]{16}/`+regexp.QuoteMeta(name)+`$`, URL(name)); !ok {
			t.Errorf("%s has the address %s", name, URL(name))
		}
		res := get(t, http.MethodGet, URL(name))
		want := http.Header{
			"Content-Type":                 {contentType},
			"Content-Length":               {strconv.Itoa(len(res.body))},
			"Cache-Control":                {"public, max-age=31536000, immutable"},
			"Vary":                         {"Accept-Encoding"},
			"X-Content-Type-Options":       {"nosniff"},
			"Cross-Origin-Resource-Policy": {"same-origin"},
			"Referrer-Policy":              {"no-referrer"},
		}
		res.header.Del("Date")
		if diff := cmp.Diff(want, res.header); diff != "" || res.status != http.StatusOK {
			t.Errorf("%s: status %d, headers (-want +got):\n%s", name, res.status, diff)
		}
		if !bytes.Equal(res.body, app.files[name].content) || len(res.body) == 0 {
			t.Errorf("%s: %d bytes that are not the file", name, len(res.body))
		}
	}
}

// A file of its own for the extension would come too late now and then.
func TestStreamsAreReadByTheScriptThatReadsPages(t *testing.T) {
	if !bytes.Contains(app.files["htmx.js"].content, []byte(`registerExtension("sse"`)) {
		t.Error("htmx.js does not hold the extension for server-sent events")
	}
}

func TestFilesAreCompressedForWhoTakesIt(t *testing.T) {
	content := app.files["htmx.js"].content
	for _, tc := range []struct {
		encodings  []string
		compressed bool
	}{
		{[]string{"gzip"}, true},
		{[]string{"gzip, deflate, br, zstd"}, true},
		{[]string{"br;q=1.0, GZIP ; q=0.8, *;q=0.1"}, true},
		{[]string{"br", "gzip"}, true},
		{nil, false},
		{[]string{"identity"}, false},
		{[]string{"br, gzip;q=0"}, false},
		{[]string{"gzip;q=0.000"}, false},
		{[]string{"gzip;q=many"}, false},
		{[]string{"notgzip"}, false},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			res := get(t, method, URL("htmx.js"), tc.encodings...)
			coding, length := "", len(content)
			if tc.compressed {
				coding, length = "gzip", Sizes()["htmx.js"]
			}
			if got := res.header.Get("Content-Encoding"); got != coding || res.length != int64(length) {
				t.Errorf("%s, taking %q: coding %q, %d bytes; want %q, %d", method, tc.encodings, got, res.length, coding, length)
			}
			if method == http.MethodHead {
				if len(res.body) != 0 {
					t.Errorf("HEAD, taking %q: a body of %d bytes", tc.encodings, len(res.body))
				}
				continue
			}
			body := res.body
			if tc.compressed {
				body = unzip(t, body)
			}
			if !bytes.Equal(body, content) {
				t.Errorf("taking %q: the body is not the file", tc.encodings)
			}
		}
	}
}

func unzip(t *testing.T, compressed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOtherAddressesHoldNothing(t *testing.T) {
	current := URL("app.js")
	hash := strings.Split(current, "/")[2]
	stale := strings.Replace(current, hash, strings.Repeat("0", hashLen), 1)
	for _, path := range []string{
		stale, "/static/app.js", "/static/" + hash + "/icon.svg", "/static/" + hash + "/none.js", "/static/" + hash + "/",
		"/static/" + strings.ToUpper(hash) + "x/app.js", "/static/", "/static/" + hash + "/..%2fasset.go", current + "/",
	} {
		res := get(t, http.MethodGet, path)
		if res.status != http.StatusNotFound || strings.Contains(res.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %v\n%s", path, res.status, res.header, res.body)
		}
	}
	if res := get(t, http.MethodGet, stale); res.header.Get("Cache-Control") != "no-store" {
		t.Errorf("that a file is not there is kept: %v", res.header)
	}
	if res := get(t, http.MethodPost, current); res.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", res.status)
	}
	if res := get(t, http.MethodGet, current); res.status != http.StatusOK {
		t.Errorf("the address of the file itself: status %d", res.status)
	}
}

func TestAnAddressFollowsTheContent(t *testing.T) {
	one := NewSet("/x/", map[string][]byte{"a.js": []byte("1")})
	two := NewSet("/x/", map[string][]byte{"a.js": []byte("2")})
	if one.URL("a.js") != "/x/6b86b273ff34fce1/a.js" || one.URL("a.js") == two.URL("a.js") {
		t.Errorf("addresses %s and %s", one.URL("a.js"), two.URL("a.js"))
	}
	defer func() {
		if recover() == nil {
			t.Error("a file that is not there has an address")
		}
	}()
	one.URL("b.js")
}

// budget is how much a browser may have to load before a page works, in
// compressed bytes: on a slow line of 1 Mbit/s that is a second.
const budget = 120 << 10

func TestPagesLoadLittle(t *testing.T) {
	total := 0
	for name, size := range Sizes() {
		t.Logf("%-15s %6d bytes compressed", name, size)
		total += size
	}
	for name := range styles {
		size := len(compress([]byte(Style(name))))
		t.Logf("%-15s %6d bytes compressed", name, size)
		total += size
	}
	if total > budget || total == 0 {
		t.Errorf("%d bytes, which is more than %d", total, budget)
	}
}

func TestStylesAskForNothing(t *testing.T) {
	policy := strings.Fields(StylePolicy())
	if len(policy) != len(styles) {
		t.Errorf("a policy of %q for %d style sheets", policy, len(styles))
	}
	for name, css := range styles {
		sum := sha256.Sum256([]byte(css))
		if !slices.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || Style(name) != "<style>"+css+"</style>" {
			t.Errorf("the policy %q does not allow %s as it is", policy, name)
		}
		for _, what := range []string{"@import", "url(", "</"} {
			if css == "" || strings.Contains(css, what) {
				t.Errorf("%s has %q in it, or nothing at all", name, what)
			}
		}
	}
}

// Browsers show nothing of an image that is not well-formed.
func TestIconIsWellFormed(t *testing.T) {
	decoder := xml.NewDecoder(bytes.NewReader(icon))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A map would be one more request, for a file that is not there.
func TestScriptsNameNoSourceMap(t *testing.T) {
	for name, f := range app.files {
		if bytes.Contains(f.content, []byte("sourceMappingURL")) {
			t.Errorf("%s names a source map", name)
		}
	}
}
