package handler

import (
	"bufio"
	"io"
	"net/http"
	"strings"
)

// normalizeHeaders brings the headers that the generated code reads into the
// only forms that it reads as this API means them: of a header given twice the
// first counts, blanks around a key do not, an empty credential is none, and
// every JSON media type is application/json.
func normalizeHeaders(h http.Header) {
	scheme, key := cutBlank(first(h, "Authorization"))
	if strings.EqualFold(scheme, "Bearer") && key != "" {
		h.Set("Authorization", "Bearer "+key)
	} else {
		h.Del("Authorization")
	}
	if key := trimBlanks(first(h, apiKeyHeader)); key != "" {
		h.Set(apiKeyHeader, key)
	} else {
		h.Del(apiKeyHeader)
	}
	if contentType := first(h, "Content-Type"); jsonContentType(contentType) {
		h.Set("Content-Type", jsonType)
	}
}

func first(h http.Header, name string) string {
	if values := h.Values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// cutBlank cuts s around its first run of blanks.
func cutBlank(s string) (before, after string) {
	s = trimBlanks(s)
	i := strings.IndexAny(s, blanks)
	if i < 0 {
		return s, ""
	}
	return s[:i], trimBlanks(s[i:])
}

func trimBlanks(s string) string { return strings.Trim(s, blanks) }

const (
	// blanks is the optional whitespace of RFC 9110, section 5.6.3.
	blanks       = " \t"
	apiKeyHeader = "X-API-Key" //nolint:gosec // The name of a header is no secret.
	// jsonType is the only content type that the generated code reads.
	jsonType = "application/json"
)

// withoutMark is a body without the byte order mark that some clients put before
// their JSON. It reads nothing before it is read itself, which is after the key
// was checked.
type withoutMark struct {
	io.Closer
	text  *bufio.Reader
	begun bool
}

const byteOrderMark = "\ufeff"

func newWithoutMark(body io.ReadCloser) *withoutMark {
	return &withoutMark{Closer: body, text: bufio.NewReaderSize(body, len(byteOrderMark))}
}

// Read implements io.Reader.
func (b *withoutMark) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		// An error of the first bytes comes back from the read below.
		if head, _ := b.text.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
			_, _ = b.text.Discard(len(byteOrderMark))
		}
	}
	return b.text.Read(p)
}
