package browser

import (
	"context"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// pictures is where pictures of pages go. It is no part of the repository.
const pictures = "AGENTRUN_SCREENSHOTS"

// views are how a page is looked at.
var views = []struct {
	name          string
	width, height int64
	scheme        string
	narrow        bool
}{
	{"light", 1280, 900, "light", false},
	{"dark", 1280, 900, "dark", false},
	{"narrow", 360, 800, "light", true},
}

// Picture keeps pictures of the page as it is, light, dark and narrow, in the
// folder that AGENTRUN_SCREENSHOTS names; without it, none. It returns the
// page's width on the narrow screen, which is 360 unless something sticks out.
func (b *Tab) Picture(name string) (narrow int64) {
	b.t.Helper()
	folder := os.Getenv(pictures)
	for _, v := range views {
		if folder != "" || v.narrow {
			b.Look(v.scheme, v.width, v.height)
		}
		if v.narrow {
			narrow = Evaluate[int64](b, `document.documentElement.scrollWidth`)
		}
		if folder != "" {
			b.keep(filepath.Join(folder, name+"-"+v.name+".png"))
		}
	}
	b.Look("light", 1280, 900)
	return narrow
}

// keep writes a picture of the whole page to a file.
func (b *Tab) keep(path string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err == nil {
		err = os.WriteFile(path, picture, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// LooksWell keeps pictures of the page, and fails the test when something sticks
// out of a narrow screen or keeps people out, or when the page is not Quiet.
func (b *Tab) LooksWell(name, server string) {
	b.t.Helper()
	if width := b.Picture(name); width > views[len(views)-1].width {
		b.t.Errorf("%s is %d pixels wide on a narrow screen", name, width)
	}
	for _, barrier := range b.Axe() {
		b.t.Errorf("%s: %s", name, barrier)
	}
	b.Quiet(name, server)
}

// Look sets the colour scheme and the size of the screen.
func (b *Tab) Look(scheme string, width, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, height), func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}, //nolint:misspell // Its name.
		})
		return chromedp.Void{}, err
	})
}
