package main

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"agentrun/internal/browser"
	"agentrun/web/gen"
	"agentrun/web/markup/markuptest"
)

// executed is what the function says that the payloads call.
const executed = "a payload was executed"

// watchFor has the browser tell of every payload that is executed, in any frame,
// and ignore the Content Security Policy when bypass is true.
func watchFor(b *browser.Tab, bypass bool) {
	b.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: bypass})
		if err == nil {
			_, err = cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
				Source: `window.xss = () => console.error("` + executed + `")`,
			})
		}
		return chromedp.Void{}, err
	})
}

// provoke does to every element of the page what handlers wait for, and returns
// the links that lead where none should.
const provoke = `(() => {
	for (const e of document.querySelectorAll("body *")) {
		for (const name of ["mouseover", "mouseenter", "focus", "load", "error", "toggle", "animationstart", "pointerover", "begin"]) {
			e.dispatchEvent(new Event(name));
		}
		if (e.tagName === "DETAILS") e.open = true;
	}
	return Array.from(document.querySelectorAll("[href], [src], [action], [formaction], [data], [srcdoc]"))
		.filter(e => !["http:", "https:", "mailto:"].includes(new URL(e.href?.baseVal ?? e.href ?? e.src ?? e.action ?? "", location).protocol) || e.srcdoc)
		.map(e => e.outerHTML.slice(0, 200));
})()`

func payloads() []markuptest.Payload {
	if os.Getenv("AGENTRUN_TEST") == "full" {
		return markuptest.Payloads
	}
	// The list is in kinds, of which this has some each.
	var some []markuptest.Payload
	for i := 0; i < len(markuptest.Payloads); i += 12 {
		some = append(some, markuptest.Payloads[i])
	}
	return some
}

// hostile fills a server with payloads in every place to which a text comes
// from outside, and returns the paths of the pages that show them.
func (s *story) hostile(all []markuptest.Payload) (paths []string, places int) {
	s.t.Helper()
	s.apply("name: fails\ncommand: [sh, -c, 'cat >&2; exit 1']\n")
	failing := s.create("fails", "start")
	s.apply("name: echo\ncommand: [cat]\n")
	echo := s.create("echo", "start")
	org := ""
	for i, payload := range all {
		s.give(failing, payload.Text)
		s.give(echo, payload.Text)
		s.create(nameOf(payload.Text), payload.Text)
		definition, err := json.Marshal(map[string]any{"name": fmt.Sprintf("%s %d", nameOf(payload.Text), i), "command": []string{"cat"}})
		if err != nil {
			s.t.Fatal(err)
		}
		applied, err := s.operator().ApplyAgent(s.t.Context(), &gen.ApplyAgentReq{File: string(definition)})
		if err != nil {
			s.t.Fatalf("%s: %v", payload.Name, err)
		}
		org = applied.Agent.OrgID.String()
		places += 5 // Input, output, error text, run name, agent name.
		file := strings.NewReplacer("/", "|", "\x00", "").Replace(payload.Text)
		file = filepath.Join(s.p.data, "workspaces", echo, file[:min(len(file), 200)])
		if os.WriteFile(file, []byte(payload.Text), 0o644) == nil { // Some are no names.
			places++
		}
	}
	for _, run := range []string{failing, echo} {
		s.awaitTurns(run, len(all)+1)
	}
	return []string{
		"/runs/" + echo + "?messages=all&events=all", "/runs/" + failing + "?events=all", "/runs/" + echo + "/files",
		"/orgs/" + org + "/agents", "/orgs/" + org + "/audit", "/orgs/" + org + "/runs",
	}, places
}

// operator is a client on the socket of the server.
func (s *story) operator() *gen.Client {
	s.t.Helper()
	client, err := gen.NewClient("http://agentrun", noToken{}, gen.WithClient(&http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, s.p.data) },
	}}))
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func (s *story) give(run, text string) {
	s.t.Helper()
	_, err := s.operator().GiveInput(s.t.Context(), &gen.GiveInputReq{Text: text}, gen.GiveInputParams{Run: uuid.MustParse(run)})
	if err != nil {
		s.t.Fatal(err)
	}
}

// awaitTurns returns when so many turns of a run are over.
func (s *story) awaitTurns(run string, turns int) {
	s.t.Helper()
	params := gen.ListEventsParams{Run: uuid.MustParse(run), Wait: gen.NewOptInt(30), Limit: gen.NewOptInt(1000)}
	for turns > 0 {
		page, err := s.operator().ListEvents(s.t.Context(), params)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page.Events) == 0 {
			s.t.Fatalf("run %s: %d turns are not over", run, turns)
		}
		for _, e := range page.Events {
			params.After = gen.NewOptInt64(e.Seq)
			if e.Kind == "turn_finished" || e.Kind == "turn_failed" {
				turns--
			}
		}
	}
}

// nameOf is what a name keeps of a payload: names are shown on one line.
func nameOf(payload string) string {
	clean := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, payload))
	if runes := []rune(clean); len(runes) > 150 {
		clean = strings.TrimSpace(string(runes[:150]))
	}
	if clean == "" {
		return "nothing"
	}
	return clean
}

// Row W1: what agents and strangers write is never executed, and nothing is
// fetched because of it, with the Content Security Policy and without.
func TestHostileTextIsHarmless(t *testing.T) {
	s := begin(t)
	all := payloads()
	paths, places := s.hostile(all)
	pages := 0
	for _, bypass := range []bool{false, true} {
		watchFor(s.Tab, bypass)
		left := slices.Clone(paths)
		for pages = 0; len(left) > 0; pages++ {
			path := left[0]
			left = left[1:]
			s.Go(s.p.url + path)
			if links := browser.Evaluate[[]string](s.Tab, provoke); len(links) > 0 {
				t.Errorf("%s: links: %q", path, links)
			}
			s.Wait(`document.readyState === "complete"`)
			if shown := browser.Evaluate[bool](s.Tab, `document.body.innerText.includes("xss()")`); !shown && !strings.Contains(path, "before=") {
				t.Errorf("%s shows no payload", path)
			}
			if older := browser.Evaluate[string](s.Tab, `document.querySelector('.pager a[href*="before="]:last-of-type')?.getAttribute("href") ?? ""`); older != "" {
				left = append(left, older)
			}
		}
		for _, complaint := range s.Complaints() {
			t.Errorf("bypass %v: %s", bypass, complaint)
		}
		for _, address := range s.Outside(s.p.url) {
			t.Errorf("bypass %v: a request leaves the server: %s", bypass, address)
		}
		s.Forget()
	}
	t.Logf("%d payloads in %d places, on %d pages, with and without the policy: %d injected, %d survived", len(all), places, pages, places, places)
}

// The control: the same payloads in a page that shows them as they are.
func TestHostileTextIsHostile(t *testing.T) {
	b := browser.Open(t)
	var body strings.Builder
	body.WriteString("<!doctype html><title>control</title><body>")
	for _, p := range payloads() {
		body.WriteString(`<iframe srcdoc="` + html.EscapeString("<body>"+p.Text) + `"></iframe>`)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(body.String()))
	}))
	defer server.Close()
	watchFor(b, true)
	b.Go(server.URL)
	b.Wait(`document.readyState === "complete"`)
	ran := 0
	for _, complaint := range b.Complaints() {
		if strings.Contains(complaint, executed) {
			ran++
		}
	}
	all, fetched := len(payloads()), len(b.Outside(server.URL))
	if ran < all/5 || fetched == 0 {
		t.Errorf("of %d payloads only %d were executed, and %d fetched something: they are no attack", all, ran, fetched)
	}
	t.Logf("of %d payloads %d executions, %d requests elsewhere", all, ran, fetched)
}
