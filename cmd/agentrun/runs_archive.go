package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func runsArchive(ctx context.Context, cmd *cli.Command, id uuid.UUID, _ []string) error {
	if cmd.String("output") == "" && isTerminal(os.Stdout) {
		return errors.New("an archive is nothing for a terminal; write it to a file with -o FILE")
	}
	return receive(ctx, cmd, fmt.Sprintf("run %s: archive", id), func(ctx context.Context, c *gen.Client) (*http.Response, error) {
		result, err := c.DownloadArchive(ctx, gen.DownloadArchiveParams{Run: id})
		if err != nil {
			return nil, err
		}
		raw, ok := result.(*gen.DownloadArchiveOKRawApplicationZip)
		if !ok {
			return nil, errors.Errorf("run %s: unexpected answer %T", id, result)
		}
		return raw.Response, nil
	})
}
