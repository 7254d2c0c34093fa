package handler

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/gen"
	"agentrun/storage"
)

// maxFiles bounds the decoded files of one request together, in bytes
// (section 8 of the API's specification).
const maxFiles = 10 << 20

// base64Error refuses a file whose content is not standard base64.
type base64Error struct{ filename string }

func (e *base64Error) Error() string { return fmt.Sprintf("file '%s' is not valid base64", e.filename) }

// Unwrap returns errNotBase64.
func (e *base64Error) Unwrap() error { return errNotBase64 }

// deliver decodes the files in their order straight into the run's workspace
// and makes them durable. A request without files needs no workspace yet.
func (h *Handler) deliver(id storage.RunID, files []gen.PublicAgentFileInput) ([]storage.FileDelivered, error) {
	if len(files) == 0 {
		return nil, nil
	}
	delivery, err := h.workspaces.Deliver(id.UUID)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := delivery.Abort(); err != nil {
			h.log.Warn("remove an unfinished delivery", zap.Stringer("run", id), zap.Error(err))
		}
	}()
	delivered := make([]storage.FileDelivered, 0, len(files))
	room := int64(maxFiles)
	for _, f := range files {
		content, size, err := decodeFile(f)
		if err != nil {
			return nil, err
		}
		if room -= size; room < 0 {
			// The content has to be right before its size counts.
			_, err := io.Copy(io.Discard, content)
			return nil, refineDecoding(err, f.Filename, errFilesTooLarge)
		}
		saved, err := delivery.Add(f.Filename, content)
		if err != nil {
			return nil, refineDecoding(err, f.Filename, err)
		}
		d := storage.FileDelivered{Name: saved.Name, Size: saved.Size}
		if saved.Name != saved.Given {
			d.GivenName = saved.Given
		}
		delivered = append(delivered, d)
	}
	return delivered, delivery.Commit()
}

// decodeFile returns a reader of the file's bytes, and how many there are when
// the content is valid. The decoder passes over line breaks and, between two of
// its reads, over padding; both are refused here. Padding bits that are not
// zero are accepted, as other decoders do.
func decodeFile(f gen.PublicAgentFileInput) (content io.Reader, size int64, err error) {
	text := f.ContentBase64
	body := strings.TrimRight(text, "=")
	padding := len(text) - len(body)
	if len(text)%4 != 0 || padding > 2 || strings.IndexByte(body, '=') >= 0 ||
		strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 {
		return nil, 0, &base64Error{f.Filename}
	}
	decoder := base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))
	return decoder, int64(base64.StdEncoding.DecodedLen(len(text)) - padding), nil
}

// refineDecoding returns the error that names the file when err is a fault of
// its content, else other.
func refineDecoding(err error, filename string, other error) error {
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &base64Error{filename}
	}
	return other
}
