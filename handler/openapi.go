package handler

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/go-faster/errors"
)

// Contract returns the public contract in JSON, as it is served. It must not be
// changed.
func Contract() []byte { return openapiJSON }

// openapiJSON is the contract as it is served: made of openapi.yaml by
// `go generate`, in its order.
//
//go:embed openapi.json
var openapiJSON []byte

// openapiTag changes exactly when the document does.
var openapiTag = func() string {
	sum := sha256.Sum256(openapiJSON)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}()

// GetOpenAPI serves the contract: GET /v1/openapi.json. It is answered with 304
// when the client has it; no other condition and no range is honoured.
func (h *Handler) GetOpenAPI(ctx context.Context, w http.ResponseWriter) error {
	r, ok := ctx.Value(requestKey{}).(*http.Request)
	if !ok {
		return errors.New("no request in the context")
	}
	plain := &http.Request{Method: r.Method, Header: http.Header{}}
	if tags := r.Header.Values("If-None-Match"); len(tags) > 0 {
		plain.Header["If-None-Match"] = tags
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", openapiTag)
	http.ServeContent(w, plain, "", time.Time{}, bytes.NewReader(openapiJSON))
	return nil
}
