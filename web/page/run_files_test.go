package page

import (
	"archive/zip"
	"bytes"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun/storage"
	"agentrun/web/markup/markuptest"
)

// mustFile puts a file into a run's workspace, as a program does.
func (s *site) mustFile(run storage.Run, path, content string) {
	s.t.Helper()
	full := filepath.Join(s.spaces.Path(run.ID.UUID), path)
	s.must(os.MkdirAll(filepath.Dir(full), 0o700))
	s.must(os.WriteFile(full, []byte(content), 0o600))
}

func TestFiles(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	_, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	path := "/runs/" + run.ID.String()
	b.get(path+"/files").want(t, http.StatusOK, "No files")
	name := `a b&c="d"#ü<img src=x>.html`
	s.mustFile(run, "sub/"+name, "<script>xss()</script>")
	s.mustFile(run, "long.txt", strings.Repeat("ä", maxPreview))
	s.mustFile(run, "exact.txt", strings.Repeat("x", maxPreview))
	s.mustFile(run, "empty.txt", "")
	s.mustFile(run, "picture.png", "\x89PNG\r\n\x1a\n\x00\x00")
	got := b.get(path + "/files")
	got.want(t, http.StatusOK, "5 files", "these are its files at this moment", "Download all")
	harmless(t, got.body)
	query := "?" + url.Values{"path": {"sub/" + name}}.Encode()
	if link := strings.ReplaceAll(template.HTMLEscapeString(path+"/preview"+query), "+", "&#43;"); !strings.Contains(got.body, link) {
		t.Errorf("no link %s:\n%s", link, got.body)
	}
	preview := b.get(path + "/preview" + query)
	preview.want(t, http.StatusOK, "&lt;script&gt;xss()&lt;/script&gt;</pre>")
	harmless(t, preview.body)
	b.get(path+"/preview?path=long.txt").want(t, http.StatusOK, "These are the first 256 KiB of the file.", "ää</pre>")
	b.get(path+"/preview?path=empty.txt").want(t, http.StatusOK, "The file is empty.")
	b.get(path+"/preview?path=picture.png").want(t, http.StatusOK, "No preview")
	exact := b.get(path + "/preview?path=exact.txt")
	exact.want(t, http.StatusOK, strings.Repeat("x", maxPreview)+"</pre>")
	if strings.Contains(exact.body, "first 256 KiB") {
		t.Error("a file that is shown whole is said to be cut")
	}
	for _, bad := range []string{"nothing", "", "../x", "/etc/passwd", "sub"} {
		for _, what := range []string{"preview", "download"} {
			got := b.get(path + "/" + what + "?path=" + url.QueryEscape(bad))
			if got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%s of %q: status %d", what, bad, got.StatusCode)
			}
			if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "; style-src 'sha256-") {
				t.Errorf("%s of %q: the problem has the policy %q", what, bad, policy)
			}
		}
	}
}

func TestDownloads(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	_, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	s.mustFile(run, "a/x.html", "<script>xss()</script>")
	path := "/runs/" + run.ID.String()
	for what, name := range map[string]string{"/download?path=a%2Fx.html": "x.html", "/archive": ""} {
		got := b.get(path + what)
		kind, params, err := mime.ParseMediaType(got.Header.Get("Content-Disposition"))
		if err != nil || kind != "attachment" || name != "" && params["filename"] != name {
			t.Errorf("%s is %s %v, %v", what, kind, params, err)
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "no-store",
		} {
			if value := got.Header.Get(header); value != want {
				t.Errorf("%s: %s is %q, want %q", what, header, value, want)
			}
		}
		if kind := got.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/") {
			t.Errorf("%s is %s", what, kind)
		}
	}
	if got := b.get(path + "/download?path=a%2Fx.html"); got.body != "<script>xss()</script>" {
		t.Errorf("the file has %q", got.body)
	}
	archive := b.get(path + "/archive").body
	files, err := zip.NewReader(bytes.NewReader([]byte(archive)), int64(len(archive)))
	if err != nil || len(files.File) != 1 || !strings.HasSuffix(files.File[0].Name, "a/x.html") {
		t.Errorf("the archive has %v, %v", files, err)
	}
}

func TestPreviewIsHostile(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	_, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	for i, payload := range markuptest.Payloads {
		name := fmt.Sprintf("%d.html", i)
		s.mustFile(run, name, payload.Text)
		if at := danger(b.get("/runs/" + run.ID.String() + "/preview?path=" + name).body); at != "" {
			t.Errorf("%s: the page has %s", payload.Name, at)
		}
	}
}
