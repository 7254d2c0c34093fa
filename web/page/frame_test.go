package page

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"agentrun/internal/browser"
)

// openAccount signs in at a real browser and shows the account page. The test
// goes on beside others.
func openAccount(t *testing.T, s *site) *browser.Tab {
	t.Helper()
	t.Parallel()
	s.mustUser(testEmail, "")
	b := browser.Open(t)
	b.Go(s.server.URL + "/sign-in?next=%2Faccount")
	b.Type("#email", testEmail)
	b.Type("#password", testPassword+"\n")
	b.Wait(`location.pathname === "/account" && document.querySelector("#who")`)
	return b
}

func TestCopyingATokenAndDeletingIt(t *testing.T) {
	s := newSite(t)
	b := openAccount(t, s)
	b.Type("#name", "deployment\n")
	b.Wait(`document.querySelector("#secret")`)
	// What would be in the clipboard, which a test cannot always read.
	browser.Evaluate[bool](b, `Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => { window.copied = text }}, configurable: true}) && true`)
	b.Click(`[data-copy="#secret"]`)
	b.Wait(`document.querySelector("#announcer").textContent === "Copied" && document.querySelector(".copy span").textContent === "Copied"`)
	if !browser.Evaluate[bool](b, `copied === document.querySelector("#secret").textContent && copied.startsWith("am_")`) {
		t.Error("what was copied is not the token")
	}
	// Without https there is no clipboard, and the text is selected and copied.
	browser.Evaluate[bool](b, `Object.defineProperty(navigator, "clipboard", {value: undefined}) &&
		document.addEventListener("copy", () => { window.copied = String(getSelection()) }) === undefined && !(window.copied = "")`)
	b.Wait(`document.querySelector("#announcer").textContent === ""`)
	b.Click(`[data-copy="#secret"]`)
	b.Wait(`document.querySelector("#announcer").textContent === "Copied"`)
	if !browser.Evaluate[bool](b, `copied.trim() === document.querySelector("#secret").textContent`) {
		t.Error("without a clipboard, what was copied is not the token")
	}
	b.Click("[data-opens]")
	b.Wait(`document.querySelector("dialog[open]")`)
	if focused := browser.Evaluate[string](b, `document.activeElement.textContent`); focused != "Cancel" {
		t.Errorf("a dialog opens with the focus on %q", focused)
	}
	b.Click("dialog[open] [data-closes]")
	b.Wait(`!document.querySelector("dialog[open]")`)
	b.Click("[data-opens]")
	b.Click("dialog[open] .danger")
	b.Wait(`document.querySelector(".notice")?.textContent.includes("The token is deleted.") && document.querySelector(".empty")`)
	b.Quiet("the page", s.server.URL)
}

func TestHtmxIsLedToSignIn(t *testing.T) {
	s := newSite(t)
	b := openAccount(t, s)
	browser.Evaluate[bool](b, `(() => {
		const button = document.createElement("button");
		button.setAttribute("hx-get", "/users");
		button.id = "part";
		document.querySelector("main").prepend(button);
		htmx.process(button);
		return true;
	})()`)
	s.forward(sessionTime * 2)
	b.Click("#part")
	b.Wait(`location.pathname === "/sign-in" && document.querySelector("#email")`)
	if search := browser.Evaluate[string](b, `location.search`); search != "?next=%2Faccount" {
		t.Errorf("from sign-in it goes on to %s", search)
	}
}

func TestMenuOnANarrowScreen(t *testing.T) {
	s := newSite(t)
	b := openAccount(t, s)
	b.Look("light", 360, 740)
	b.Go(s.server.URL + "/account")
	seen := func(selector string) bool {
		return browser.Evaluate[bool](b, `document.querySelector("`+selector+`").checkVisibility()`)
	}
	got := []bool{seen(".side nav"), seen(".menu-nav")}
	b.Click(".menu > summary")
	got = append(got, seen(".menu-nav"))
	b.Do(chromedp.KeyEvent("\x1b"))
	b.Wait(`!document.querySelector(".menu").open`)
	b.Click(".menu > summary")
	b.Click(`.menu-nav a[href="/users"]`)
	b.Wait(`location.pathname === "/users"`)
	b.Look("light", 1280, 900)
	got = append(got, seen(".side nav"))
	if diff := cmp.Diff([]bool{false, false, true, true}, got); diff != "" {
		t.Errorf("side bar; menu closed, open; side bar when wide (-want +got):\n%s", diff)
	}
	b.Quiet("the page", s.server.URL)
}

// framePages are the pages of the frame for an operator, by a name.
func framePages(ids map[string]string) map[string]string {
	return map[string]string{
		"account": "/account", "users": "/users", "user": "/users/" + ids["{user}"], "orgs": "/orgs", "problem": "/orgs/" + nobody + "/runs",
	}
}

func TestPagesSuitEverybody(t *testing.T) {
	browser.NeedAxe(t)
	s := newSite(t)
	b := openAccount(t, s)
	b.Type("#name", "deployment\n")
	b.Wait(`document.querySelector("#secret")`)
	b.LooksWell("frame-token", s.server.URL)
	for name, path := range framePages(s.mustIDs()) {
		b.Go(s.server.URL + path)
		if name == "problem" {
			b.Forget() // The browser notes the 404.
		}
		b.LooksWell("frame-"+name, s.server.URL)
	}

	// What is looked for would be found.
	browser.Evaluate[bool](b, `(() => {
		document.querySelector("h1").append(document.createElement("img"));
		document.querySelector("h1").style.color = "light-dark(black, #222)";
		return true;
	})()`)
	found := strings.Join(b.Axe(), "\n")
	const contrast = ": color-contrast" //nolint:misspell // Its name.
	if !strings.Contains(found, "light: image-alt") || !strings.Contains(found, "dark"+contrast) || strings.Contains(found, "light"+contrast) {
		t.Errorf("of an image without a text, and dark grey on black, axe-core finds:\n%s", found)
	}
}
