package web_test

import (
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"agentrun/storage"
	"agentrun/web"
	"agentrun/web/gen"
)

// write puts a file into the run's workspace, as a program does.
func (a *at) write(path, content string) (full string) {
	a.t.Helper()
	full = filepath.Join(a.spaces.Path(a.run.UUID), path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return full
}

func (a *at) files() (*gen.FileList, error) {
	return a.c.ListFiles(a.t.Context(), gen.ListFilesParams{Run: a.run.UUID})
}

// download is a file on its way. The test closes it at its end at the latest.
type download struct {
	io.ReadCloser
	header http.Header
	length int64
}

func (a *at) open(path string) (*download, error) {
	a.t.Helper()
	res, err := a.c.DownloadFile(a.t.Context(), gen.DownloadFileParams{Run: a.run.UUID, Path: path})
	if err != nil {
		return nil, err
	}
	answer := res.(*gen.DownloadFileOKRawApplicationOctetStream).Response
	a.t.Cleanup(func() { _ = answer.Body.Close() })
	return &download{answer.Body, answer.Header, answer.ContentLength}, nil
}

func TestFiles(t *testing.T) {
	a := withRun(t, web.Config{}, "hello")
	if got := must[*gen.FileList](t)(a.files()); got.Files == nil || len(got.Files) != 0 || got.More || got.Skipped != 0 {
		t.Errorf("no folder: %+v", got)
	}
	want := []gen.File{}
	at := time.Date(2020, 2, 29, 12, 30, 15, 0, time.UTC)
	for _, path := range []string{"\x1b[31mred", "\"qu\\oted\"", "a\nb/c\r\nd: e", "plain.txt", "sub/dir/ä&b=c;d ?#%20+.bin"} {
		full := a.write(path, path)
		if err := os.Chtimes(full, at, at); err != nil {
			t.Fatal(err)
		}
		want = append(want, gen.File{Path: path, Size: int64(len(path)), ModifiedAt: at})
		answer := must[*download](t)(a.open(path))
		text := must[[]byte](t)(io.ReadAll(answer))
		if string(text) != path || answer.length != int64(len(path)) {
			t.Errorf("%q: %q, length %d", path, text, answer.length)
		}
		kind, params, err := mime.ParseMediaType(answer.header.Get("Content-Disposition"))
		if err != nil || kind != "attachment" || params["filename"] != filepath.Base(path) {
			t.Errorf("%q: %s %q, %v", path, kind, params, err)
		}
		if h := answer.header; h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: %v", path, h)
		}
	}
	if err := os.Symlink("plain.txt", filepath.Join(a.spaces.Path(a.run.UUID), "link")); err != nil {
		t.Fatal(err)
	}
	got := must[*gen.FileList](t)(a.files())
	if diff := cmp.Diff(want, got.Files); diff != "" || got.More || got.Skipped != 1 {
		t.Errorf("%+v\n%s", got, diff)
	}
}

func TestFilesAreRefused(t *testing.T) {
	a := withRun(t, web.Config{})
	folder := filepath.Dir(a.write("dir/file", "x"))
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		status int
		detail string
	}{
		"absent":        {http.StatusNotFound, "no such file"},
		"dir/file/more": {http.StatusNotFound, "no such file"},
		"dir":           {http.StatusNotFound, "is a directory"},
		"dir/link":      {http.StatusNotFound, "is a symbolic link"},
		"dir/fifo":      {http.StatusNotFound, "is a named pipe"},
		"../x":          {http.StatusUnprocessableEntity, "invalid path"},
		"/etc/passwd":   {http.StatusUnprocessableEntity, "invalid path"},
		"dir\x00/file":  {http.StatusUnprocessableEntity, "invalid path"},
		"\xff":          {http.StatusUnprocessableEntity, "invalid path"},
		"":              {http.StatusUnprocessableEntity, ""},
	} {
		if p := problem(t, second(a.open(path))); p.StatusCode != want.status || !strings.Contains(p.Response.Detail, want.detail) {
			t.Errorf("%q: %+v", path, p)
		}
	}
	run := a.run
	a.run = storage.RunID{UUID: uuid.New()}
	for what, err := range map[string]error{"list": second(a.files()), "download": second(a.open("file"))} {
		if p := problem(t, err); p.StatusCode != http.StatusNotFound || !strings.Contains(p.Response.Detail, "no such run") {
			t.Errorf("%s of an unknown run: %+v", what, p)
		}
	}
	a.run = run
	must[*gen.Run](t)(a.delete(0))
	// Its files are still there, and are nobody's any more.
	if got := must[*gen.FileList](t)(a.files()); len(got.Files) != 0 {
		t.Errorf("deleted: %+v", got)
	}
	if p := problem(t, second(a.open("dir/file"))); p.StatusCode != http.StatusNotFound || !strings.Contains(p.Response.Detail, "was deleted") {
		t.Errorf("deleted: %+v", p)
	}
}

// sparse is so long that no buffer on the way holds it.
const sparse = 256 << 20

// A file that becomes shorter gives a broken answer, never a short file or one
// with something else at its end. The reason is in the log.
func TestDownloadOfAFileThatShrinks(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	a := withRun(t, web.Config{Log: zap.New(core)})
	full := a.write("log", "")
	if err := os.Truncate(full, sparse); err != nil {
		t.Fatal(err)
	}
	answer := must[*download](t)(a.open("log"))
	if _, err := io.CopyN(io.Discard, answer, 1000); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(full, 1); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, answer)
	if !errors.Is(err, io.ErrUnexpectedEOF) || n >= sparse/2 {
		t.Errorf("%d bytes, %v", n, err)
	}
	// The connection is closed after the line was written.
	if got := logs.FilterMessage("download broken off").Len(); got != 1 {
		t.Errorf("%d lines in the log", got)
	}
}

func TestDownloadOfAFileThatGrows(t *testing.T) {
	a := withRun(t, web.Config{})
	full := a.write("log", "")
	if err := os.Truncate(full, sparse); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer := must[*download](t)(a.open("log"))
	if err := os.Truncate(full, 2*sparse); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, answer)
	if n != sparse || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes of memory for %d of the file", used, n)
	}
}

// A client that goes away is not worth a line in the log.
func TestDownloadIsLeft(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	t.Cleanup(func() { // The server has ended by then.
		if logs.Len() != 0 {
			t.Errorf("%+v", logs.All())
		}
	})
	a := withRun(t, web.Config{Log: zap.New(core)})
	if err := os.Truncate(a.write("log", ""), sparse); err != nil {
		t.Fatal(err)
	}
	answer := must[*download](t)(a.open("log"))
	if err := answer.Close(); err != nil {
		t.Fatal(err)
	}
}
