package page

import (
	"bytes"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/go-faster/errors"

	"agentrun/web/gen"
	"agentrun/web/markup"
)

const (
	// maxPreview is how much of a file is shown, in bytes.
	maxPreview = 256 << 10
	// maxFileRows is how many files the page names; the archive has all.
	maxFileRows = 2000
)

// sandboxed is the policy of an answer that holds what an agent wrote: even if
// a browser were to show it, it would run nothing and load nothing.
const sandboxed = "default-src 'none'; sandbox"

// fileRow is a file in the list.
type fileRow struct {
	gen.File
	run string
}

// Preview and Download are the file's addresses.
func (f fileRow) Preview() string { return f.address("preview") }

// Download is the address of the file's bytes.
func (f fileRow) Download() string { return f.address("download") }

func (f fileRow) address(what string) string {
	return f.run + "/" + what + "?" + url.Values{"path": {f.Path}}.Encode()
}

// runFiles answers with the files of a run.
func (a *App) runFiles(w http.ResponseWriter, r *http.Request, v *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	head, err := a.runHead(r.Context(), id)
	if err != nil {
		return err
	}
	found, err := a.api.ListFiles(r.Context(), gen.ListFilesParams{Run: id})
	if err != nil {
		return err
	}
	page := struct {
		runHead
		Files []fileRow
		// Total is how many files there are at least, Skipped what is none.
		Total, Skipped int
		// Size is that of all files, in bytes.
		Size int64
		More bool
	}{runHead: head, Total: len(found.Files), Skipped: found.Skipped, More: found.More}
	for i, f := range found.Files {
		page.Size += f.Size
		if i < maxFileRows {
			page.Files = append(page.Files, fileRow{File: f, run: runAddress(id)})
		}
	}
	v.enter(head.OrgID)
	v.Section, v.Title, v.Data = "runs", "Files of "+head.Name, page
	return a.show(w, r, http.StatusOK, "run_files", v)
}

// runPreview answers with the beginning of a file, as text.
func (a *App) runPreview(w http.ResponseWriter, r *http.Request, v *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	head, err := a.runHead(r.Context(), id)
	if err != nil {
		return err
	}
	path := r.URL.Query().Get("path")
	begin := fileBegin{header: http.Header{}}
	if err := a.readBegin(r, gen.DownloadFileParams{Run: id, Path: path}, &begin); err != nil {
		return err
	}
	content := begin.content.Bytes()
	page := struct {
		runHead
		fileRow
		Text string
		// IsText is false for what cannot be shown, Cut true when there is more.
		IsText, Cut bool
	}{runHead: head, fileRow: fileRow{File: gen.File{Path: path}, run: runAddress(id)}, Cut: begin.cut}
	if begin.cut {
		content = []byte(firstBytes(string(content), maxPreview))
	}
	if page.IsText = isText(content); page.IsText {
		page.Text = markup.Terminal(string(content))
	}
	v.enter(head.OrgID)
	v.Section, v.Title, v.Data = "runs", path, page
	return a.show(w, r, http.StatusOK, "run_preview", v)
}

// isText says whether the bytes can be read by people: UTF-8 without NUL.
func isText(content []byte) bool {
	return bytes.IndexByte(content, 0) < 0 && utf8.Valid(content)
}

// readBegin reads the beginning of a file.
func (a *App) readBegin(r *http.Request, params gen.DownloadFileParams, begin *fileBegin) (err error) {
	defer func() {
		// So a download ends that does not reach its end, and this one need not.
		if broken := recover(); broken != nil && broken != http.ErrAbortHandler { //nolint:errorlint // It is this very value.
			panic(broken)
		}
	}()
	return a.api.DownloadFile(r.Context(), params, begin)
}

// fileBegin takes the beginning of a download, and refuses the rest.
type fileBegin struct {
	header  http.Header
	content bytes.Buffer
	cut     bool
}

var errEnough = errors.New("enough of the file")

func (b *fileBegin) Header() http.Header { return b.header }

func (b *fileBegin) WriteHeader(int) {}

func (b *fileBegin) Write(p []byte) (int, error) {
	// One byte more than is shown, or a cut in half a character would not be seen.
	if room := maxPreview + 1 - b.content.Len(); len(p) >= room {
		b.content.Write(p[:room])
		b.cut = true
		return room, errEnough
	}
	return b.content.Write(p)
}

// runDownload answers with the bytes of a file, for the browser to keep.
func (a *App) runDownload(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	return withPolicy(w, func() error {
		return a.api.DownloadFile(r.Context(), gen.DownloadFileParams{Run: id, Path: r.URL.Query().Get("path")}, w)
	})
}

// runArchive answers with all files of a run in one archive.
func (a *App) runArchive(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	return withPolicy(w, func() error {
		return a.api.DownloadArchive(r.Context(), gen.DownloadArchiveParams{Run: id}, w)
	})
}

// withPolicy sends a download sandboxed, but not the page that says why there is
// none.
func withPolicy(w http.ResponseWriter, download func() error) error {
	pages := w.Header().Get("Content-Security-Policy")
	w.Header().Set("Content-Security-Policy", sandboxed)
	err := download()
	if err != nil {
		w.Header().Set("Content-Security-Policy", pages)
	}
	return err
}
