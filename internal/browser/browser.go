// Package browser drives a real browser for tests: one tab, what it requested
// and complained about, pictures of pages, and what axe-core finds in them. It
// is for tests only, and knows no page of agentrun.
package browser

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"agentrun/internal/needs"
)

// Tab is one tab of a browser of its own. All methods end the test on a failure.
type Tab struct {
	t testing.TB
	// Context is for actions of chromedp that the methods do not have.
	Context context.Context

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// Open starts a browser, which ends with the test, within some minutes at the
// latest. No name leads anywhere in it: whatever a page does, only addresses of
// this machine can be reached.
func Open(t testing.TB) *Tab {
	t.Helper()
	needs.Program(t, "chromium-headless-shell")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath("chromium-headless-shell"), chromedp.WindowSize(1280, 900),
		// Tests may run as root.
		chromedp.NoSandbox, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"))
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &Tab{t: t, Context: ctx}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	// The first action starts the browser, which lives as long as its context.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return b
}

// note is called with every event of the tab.
func (b *Tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, event.Request.URL)
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, event.Entry.Text+" "+event.Entry.URL)
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(event.ExceptionDetails)
		b.complaints = append(b.complaints, string(text))
	case *runtime.EventConsoleAPICalled:
		text, _ := json.Marshal(event.Args)
		b.complaints = append(b.complaints, string(event.Type)+" "+string(text))
	}
}

// Outside returns the addresses of requests that went, or would have gone, to
// another server than this one.
func (b *Tab) Outside(server string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var outside []string
	for _, address := range b.requests {
		if !strings.HasPrefix(address, server+"/") && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			outside = append(outside, address)
		}
	}
	return outside
}

// Complaints returns what the browser and the scripts complained about, such as
// a violation of the Content Security Policy.
func (b *Tab) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.complaints)
}

// Quiet fails the test when the browser complained, or a request went to another
// server than this one, since the tab was opened or since Forget.
func (b *Tab) Quiet(name, server string) {
	b.t.Helper()
	for _, complaint := range b.Complaints() {
		b.t.Errorf("%s: the browser complains: %s", name, complaint)
	}
	for _, address := range b.Outside(server) {
		b.t.Errorf("%s: a request leaves the server: %s", name, address)
	}
	b.Forget()
}

// Forget forgets the requests and complaints up to here.
func (b *Tab) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests, b.complaints = nil, nil
}

// patience is how long a step may take. An element that does not come would be
// waited for without end.
const patience = 30 * time.Second

// Do runs the steps in the tab.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\nComplaints: %q\n%s", err, b.Complaints(), b.where())
	}
}

// where tells what page the tab shows.
func (b *Tab) where() string {
	text, err := chromedp.Run(b.Context, chromedp.Evaluate[string](`location.href + "\n" + document.body?.innerText.slice(0, 1500)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// Go opens an address and waits until the page is loaded.
func (b *Tab) Go(address string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(address))
}

// Begin opens an address and waits for the beginning of the page only.
func (b *Tab) Begin(address string) {
	b.t.Helper()
	b.Do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.Navigate, page.NavigateParams{URL: address})
		return err
	}))
}

// Click clicks on the first element that the CSS selector fits, once it is seen.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Type types into the first element that the CSS selector fits.
func (b *Tab) Type(selector, text string) {
	b.t.Helper()
	b.Do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Evaluate returns the value of a JavaScript expression, which may be a promise.
func Evaluate[T any](b *Tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.Context, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\nComplaints: %q", expression, err, b.Complaints())
	}
	return value
}

// Wait returns when the JavaScript condition holds, which is looked at soon after
// every change of the page, once for many. A page that is left meanwhile is asked again, and a
// condition that cannot be evaluated yet does not hold yet.
func (b *Tab) Wait(condition string) {
	b.t.Helper()
	expression := `new Promise((done, failed) => {
		let observer, due, error = "";
		const look = () => {
			due = false;
			try { if (` + condition + `) { observer?.disconnect(); done(true) } } catch (e) { error = e + "; " }
		};
		observer = new MutationObserver(() => { if (!due) { due = true; setTimeout(look, 10) } });
		observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		look();
		setTimeout(() => failed(new Error(error + "it did not come to hold; the page says: " + document.body?.innerText.slice(0, 2000))), 30000);
	})`
	for {
		_, err := chromedp.Run(b.Context, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
		switch {
		case err == nil:
			return
		case strings.Contains(err.Error(), "Inspected target navigated or closed"),
			strings.Contains(err.Error(), "Execution context was destroyed"),
			strings.Contains(err.Error(), "Promise was collected"),
			strings.Contains(err.Error(), "Cannot find context"):
			continue
		}
		b.t.Fatalf("%s: %v\nComplaints: %q", condition, err, b.Complaints())
	}
}
