package reference

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/go-faster/yaml"
	"github.com/google/go-cmp/cmp"

	"agentrun/internal/browser"
	"agentrun/web/asset"
)

// site is the page on a server whose APIs answer everything in the same way.
type site struct {
	url        string
	operations map[string][]string // The operation IDs of the contracts, by the query of their page.

	mu    sync.Mutex
	calls []string // What the APIs were asked.
}

// newSite serves the page with the real contracts.
func newSite(t *testing.T) *site {
	t.Helper()
	public, management := readContract(t, "../../openapi.yaml"), readContract(t, "../openapi.yaml")
	s := &site{operations: map[string][]string{
		"": operationIDs(t, public), "?contract=management": operationIDs(t, management),
	}}
	mux := http.NewServeMux()
	mux.Handle("/docs/api", New(public, management))
	mux.Handle("/docs/api/", New(public, management))
	mux.Handle("/static/", asset.Handler())
	api := func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls = append(s.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"answer": "of the API"}`)
	}
	mux.HandleFunc("/v1/", api)
	mux.HandleFunc("/api/v1/", api)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func readContract(t *testing.T, path string) []byte {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(source, &document); err != nil {
		t.Fatal(err)
	}
	contract, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return contract
}

func operationIDs(t *testing.T, contract []byte) []string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(contract, &document); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, item := range document.Paths {
		for _, member := range item {
			var operation struct {
				ID string `json:"operationId"`
			}
			if json.Unmarshal(member, &operation) == nil && operation.ID != "" {
				ids = append(ids, operation.ID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// tab is a tab of a real browser.
type tab struct {
	*browser.Tab
	t *testing.T
}

func openTab(t *testing.T) tab {
	t.Helper()
	return tab{browser.Open(t), t}
}

// show opens the page and waits until its contract is there.
func (b tab) show(s *site, query string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(s.url + "/docs/api" + query))
	b.Wait(`document.querySelector(".swagger-ui .info .title, .swagger-ui .errors")`)
}

func TestPageShowsEveryOperation(t *testing.T) {
	s, b := newSite(t), openTab(t)
	b.show(s, "")
	// The public contract comes first, and a link leads to the other one.
	for _, query := range []string{"", "?contract=management"} {
		want := s.operations[query]
		if query != "" {
			b.Do(chromedp.Click(chromedp.CSS(`nav a:not([aria-current])`)))
			b.Wait(`location.search === "` + query + `" && document.querySelector(".opblock")`)
			if title := browser.Evaluate[string](b.Tab, `document.title`); title != "Management API – agentrun" {
				t.Errorf("the title is %q", title)
			}
		}
		if width := b.Picture("reference" + query); width > 360 {
			t.Errorf("/docs/api%s is %d pixels wide on a screen of 360", query, width)
		}
		shown := browser.Evaluate[[]string](b.Tab, `Array.from(document.querySelectorAll(".opblock"), e => e.id.split("-").pop()).sort()`)
		if diff := cmp.Diff(want, shown); diff != "" || len(want) < 3 {
			t.Errorf("operations on /docs/api%s (-want +got):\n%s", query, diff)
		}
		if found := browser.Evaluate[string](b.Tab, `Array.from(document.querySelectorAll(".errors"), e => e.innerText).join()`); found != "" {
			t.Errorf("/docs/api%s shows errors: %s", query, found)
		}
		landmarks := browser.Evaluate[string](b.Tab, `[document.documentElement.lang, ...["header", "nav", "main", "footer"].map(
			name => document.querySelectorAll("body > " + name + ", body > header > " + name).length)].join(" ")`)
		if landmarks != "en 1 1 1 1" {
			t.Errorf("/docs/api%s: language and landmarks %s", query, landmarks)
		}
		if home := browser.Evaluate[string](b.Tab, `document.querySelector("header a").pathname`); home != "/" {
			t.Errorf("/docs/api%s leads back to %s", query, home)
		}
		// Only what is unfolded has its parameters and schemas drawn, which takes the
		// browser long: some of many operations are enough in between.
		step := 1
		if len(want) > 12 && os.Getenv("AGENTRUN_TEST") != "full" {
			step = 5
		}
		browser.Evaluate[bool](b.Tab, fmt.Sprintf(`Array.from(document.querySelectorAll(".opblock:not(.is-open) .opblock-summary-control"))
			.forEach((e, i) => i %% %d === 0 && e.click()) || true`, step))
		b.Wait(fmt.Sprintf(`document.querySelectorAll(".opblock.is-open .responses-wrapper").length === %d`, (len(want)+step-1)/step))
		// It can be tried only when there is a field for each name in the path.
		b.Wait(`Array.from(document.querySelectorAll(".opblock.is-open")).every(block =>
			Array.from(block.querySelector("[data-path]").dataset.path.matchAll(/{(.*?)}/g)).every(([, name]) =>
				block.querySelector('tr[data-param-name="' + name + '"]')))`)
		b.Quiet("the page", s.url)
	}
}

func TestTryItOut(t *testing.T) {
	s, b := newSite(t), openTab(t)
	b.show(s, "?contract=management")
	b.tryOut("getOrg", chromedp.SendKeys(chromedp.CSS(`.opblock[id$="-getOrg"] [data-param-name="org"] input`), "acme"))
	b.show(s, "")
	b.tryOut("getOpenAPI")

	// With a key, in the form of the page, and the contract's example as parameter.
	b.Do(chromedp.Click(chromedp.CSS(`.auth-wrapper .authorize`)),
		chromedp.SendKeys(chromedp.CSS(`.modal-ux input[type="text"], .modal-ux input[type="password"]`), "the-key"),
		chromedp.Click(chromedp.CSS(`.modal-ux .authorize`)),
		chromedp.Click(chromedp.CSS(`.modal-ux .btn-done`)))
	b.tryOut("getAgent")

	want := []string{
		"GET /api/v1/orgs/acme", "GET /v1/openapi.json",
		"GET /v1/agents/0197f3a2-6c00-7a11-9b22-3c44d5e6f708 Bearer the-key",
	}
	if diff := cmp.Diff(want, s.called()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	b.Quiet("the page", s.url)
}

// tryOut has the page call the operation, after the steps that fill its form,
// and expects to see the answer.
func (b tab) tryOut(operation string, fill ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	block := `.opblock[id$="-` + operation + `"] `
	b.Do(chromedp.Click(chromedp.CSS(block+`.opblock-summary-control`)), chromedp.Click(chromedp.CSS(block+`.try-out__btn`)))
	b.Do(fill...)
	b.Do(chromedp.Click(chromedp.CSS(block + `.btn.execute`)))
	b.Wait(`document.querySelector('` + block + `.live-responses-table')?.innerText.includes("of the API")`)
}

// The checks above must be able to fail: a page that loads something from
// elsewhere is stopped, and that is seen.
func TestWhatLeavesTheServerIsSeen(t *testing.T) {
	s, b := newSite(t), openTab(t)
	b.show(s, "")
	browser.Evaluate[bool](b.Tab, `new Promise(done => {
		document.addEventListener("securitypolicyviolation", () => done(true));
		document.body.append(Object.assign(new Image(), {src: "https://elsewhere.invalid/badge.png"}));
	})`)
	outside, complaints := b.Outside(s.url), b.Complaints()
	if !slices.Contains(outside, "https://elsewhere.invalid/badge.png") {
		t.Errorf("the request was not seen: %q", outside)
	}
	if !slices.ContainsFunc(complaints, func(text string) bool { return strings.Contains(text, "Content Security Policy") }) {
		t.Errorf("the violation was not seen: %q", complaints)
	}
}
