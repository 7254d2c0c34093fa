package asset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Set is a group of files that are served below one path. It is an
// http.Handler for that path and may be used concurrently.
type Set struct {
	prefix string
	files  map[string]*file
	mux    *http.ServeMux
}

// file is one file of a set. Nothing changes its content.
type file struct {
	content     []byte
	hash        string
	contentType string
	// compressed is the content, gzipped on the first call.
	compressed func() []byte
}

// hashLen is how many characters of the SHA-256 sum, in hex, are in an address.
// 64 bits are plenty to tell one version of our own file from another.
const hashLen = 16

// NewSet returns the set of these files, by name, below prefix, which begins
// and ends with a slash. The contents belong to the set from here on. A name has
// no slash; its ending says what the file is, and plain text is the default.
func NewSet(prefix string, contents map[string][]byte) *Set {
	s := &Set{prefix: prefix, files: map[string]*file{}, mux: http.NewServeMux()}
	for name, content := range contents {
		sum := sha256.Sum256(content)
		s.files[name] = &file{
			content:     content,
			hash:        hex.EncodeToString(sum[:])[:hashLen],
			contentType: contentType(name),
			compressed:  sync.OnceValue(func() []byte { return compress(content) }),
		}
	}
	s.mux.HandleFunc("GET "+prefix+"{hash}/{name}", s.serve)
	return s
}

// URL is the path of a file. It panics when the set has no such file: what
// pages load is known when they are written.
func (s *Set) URL(name string) string {
	f, found := s.files[name]
	if !found {
		panic("asset: no file " + strconv.Quote(name) + " below " + s.prefix)
	}
	return s.prefix + f.hash + "/" + name
}

// Sizes are the compressed sizes of the files in bytes, by name.
func (s *Set) Sizes() map[string]int {
	sizes := map[string]int{}
	for name, f := range s.files {
		sizes[name] = len(f.compressed())
	}
	return sizes
}

// ServeHTTP answers GET and HEAD of the paths that URL gives, and 404 for any
// other path, also that of an earlier version of a file.
func (s *Set) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Set) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	f, found := s.files[r.PathValue("name")]
	if !found || r.PathValue("hash") != f.hash {
		// The same address may be right for the next version of the program.
		header.Set("Cache-Control", "no-store")
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	body := f.content
	if TakesGzip(r.Header) {
		header.Set("Content-Encoding", "gzip")
		body = f.compressed()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // The client may have left.
}

// TakesGzip says whether the headers of a request list gzip as a coding that the
// client takes.
func TakesGzip(header http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(header.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight, weighted := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml; charset=utf-8"
	default:
		return "text/plain; charset=utf-8"
	}
}

func compress(content []byte) []byte {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // The level is a valid one, and memory takes every byte.
	}
	return compressed.Bytes()
}
