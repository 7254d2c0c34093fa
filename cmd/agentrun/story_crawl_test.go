package main

import (
	"bytes"
	"compress/gzip"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"agentrun/web/gen"
)

// maxShipped is the most script and style that a page may ship, compressed, in
// bytes.
const maxShipped = 120 << 10

// firstFlight is how much of an answer goes on its way before a client has
// acknowledged any of it: 10 segments of 1,460 bytes, less the headers (RFC 6928).
const firstFlight = 10*1460 - 1200

var (
	links   = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)
	scripts = regexp.MustCompile(`<script[^>]*>`)
	files   = regexp.MustCompile(`<script[^>]* src="(/static/[^"]*)"`)
	styles  = regexp.MustCompile(`(?s)<style>.*?</style>`)
	sheets  = regexp.MustCompile(`<link [^>]*stylesheet[^>]*>`)
)

// TestEveryLinkLeadsSomewhere follows every link from the first page on, signed
// in as an operator, and weighs what each page ships.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	s := &story{t: t, p: unattended(t)}
	s.apply("name: echo\ncommand: [cat]\n")
	run := s.create("run", "hello")
	s.awaitTurns(run, 1)
	if err := os.WriteFile(filepath.Join(s.p.data, "workspaces", run, "a b?#%.txt"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.apply("name: echo\ncommand: [cat]\nlimits: {turn: 1m}\n")
	if _, err := s.operator().CreateUser(t.Context(), &gen.CreateUserReq{Email: "member@example.org", Password: "another long one"}); err != nil {
		t.Fatal(err)
	}
	c := newCrawler(t, s.p.url)
	heaviest, most, longestPage, longest := "", 0, "", 0
	c.crawl(func(path, page string) {
		shipped := gzipped(t, strings.Join(styles.FindAllString(page, -1), ""))
		if sheet := sheets.FindString(page); sheet != "" {
			t.Errorf("%s is not painted before %s", path, sheet)
		}
		if size := gzipped(t, page); size > longest {
			longestPage, longest = path, size
		}
		for _, file := range files.FindAllStringSubmatch(page, -1) {
			shipped += c.weight(file[1])
		}
		if shipped > most {
			heaviest, most = path, shipped
		}
		for _, script := range scripts.FindAllString(page, -1) {
			if !strings.Contains(script, " defer>") {
				t.Errorf("%s is not painted before %s", path, script)
			}
		}
		if shipped > maxShipped {
			t.Errorf("%s ships %d bytes of script and style, compressed", path, shipped)
		}
	})
	if len(c.seen) < 30 {
		t.Errorf("only %d links were found: %v", len(c.seen), c.seen)
	}
	if longest > firstFlight {
		t.Errorf("%s takes %d bytes, compressed: more than one round trip", longestPage, longest)
	}
	t.Logf("%d links; %s ships the most script and style: %d bytes, compressed; %s is the longest page: %d bytes, compressed",
		len(c.seen), heaviest, most, longestPage, longest)
}

func gzipped(t *testing.T, text string) int {
	t.Helper()
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed.Len()
}

// crawler is a browser without scripts, signed in.
type crawler struct {
	t       *testing.T
	url     string
	http    *http.Client
	seen    map[string]bool
	weights map[string]int
}

func newCrawler(t *testing.T, address string) *crawler {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &crawler{t: t, url: address, http: &http.Client{Jar: jar}, seen: map[string]bool{}, weights: map[string]int{}}
	form := url.Values{"email": {storyEmail}, "password": {storyPassword}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", address)
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || strings.HasSuffix(res.Request.URL.Path, "/sign-in") {
		t.Fatalf("sign-in: %s at %s", res.Status, res.Request.URL)
	}
	return c
}

// visited is an answer with its text.
type visited struct {
	status int
	header http.Header
	body   string
	// url is where redirects led to.
	url *url.URL
}

// get returns the answer to a path of the server.
func (c *crawler) get(path string, headers ...string) visited {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return visited{res.StatusCode, res.Header, string(body), res.Request.URL}
}

// crawl visits every page that links lead to, each once.
func (c *crawler) crawl(visit func(path, page string)) {
	c.t.Helper()
	for left := []string{"/"}; len(left) > 0; {
		path := left[0]
		left = left[1:]
		if c.seen[path] {
			continue
		}
		c.seen[path] = true
		got := c.get(path)
		if got.status != http.StatusOK {
			c.t.Errorf("%s: %d", path, got.status)
		}
		if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") || strings.HasPrefix(path, "/docs/") {
			continue
		}
		visit(path, got.body)
		for _, link := range links.FindAllStringSubmatch(got.body, -1) {
			target, err := got.url.Parse(html.UnescapeString(link[1]))
			if err != nil {
				c.t.Errorf("%s links to %q: %v", path, link[1], err)
				continue
			}
			if target.Host == got.url.Host {
				left = append(left, target.RequestURI())
			}
		}
	}
}

// weight is the size of a file as it is sent.
func (c *crawler) weight(path string) int {
	c.t.Helper()
	if _, known := c.weights[path]; !known {
		got := c.get(path, "Accept-Encoding", "gzip")
		size, err := strconv.Atoi(got.header.Get("Content-Length"))
		if err != nil || size != len(got.body) || got.header.Get("Content-Encoding") != "gzip" {
			c.t.Errorf("%s: %d bytes, %v", path, len(got.body), got.header)
		}
		c.weights[path] = size
	}
	return c.weights[path]
}
