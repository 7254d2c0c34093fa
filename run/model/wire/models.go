package wire

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// The bounds of a list of models.
const (
	listTime = 20 * time.Second
	maxList  = 4 << 20
)

// Models asks once for the names of the provider's models, at a path below its
// base URL. Errors: ctx's; *model.Error.
func (c *Client) Models(ctx context.Context, path string, header http.Header) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	x := &Exchange{client: c}
	names, err := c.list(ctx, x, path, header)
	if err != nil {
		failed := x.failure(ctx, err)
		failed.Attempts = 1
		return nil, &failed
	}
	return names, nil
}

func (c *Client) list(ctx context.Context, x *Exchange, path string, header http.Header) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.BaseURL+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("User-Agent", "agentrun")
	x.sent = true
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, x.refusal(res, "")
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxList)).Decode(&list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Data))
	for i, m := range list.Data {
		names[i] = m.ID
	}
	return names, nil
}
