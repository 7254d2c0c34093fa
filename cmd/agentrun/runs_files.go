package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func runsFiles(ctx context.Context, cmd *cli.Command, id uuid.UUID, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		list, err := c.ListFiles(ctx, gen.ListFilesParams{Run: id})
		if err != nil {
			return err
		}
		if err := show(cmd, list.Files, fileTable(list.Files)); err != nil {
			return err
		}
		return noteMissing(os.Stderr, list)
	})
}

func fileTable(files []gen.File) table {
	t := table{head: []string{"SIZE", "MODIFIED", "PATH"}}
	for _, f := range files {
		t.rows = append(t.rows, []string{strconv.FormatInt(f.Size, 10), at(f.ModifiedAt), f.Path})
	}
	return t
}

// noteMissing says what a list of files does not show.
func noteMissing(out io.Writer, list *gen.FileList) error {
	if list.More {
		_, err := fmt.Fprintln(out, "agentrun: there are more files: too many to list, or in too many folders one in the other")
		if err != nil {
			return err
		}
	}
	if list.Skipped > 0 {
		_, err := fmt.Fprintf(out, "agentrun: not shown: %d symbolic links, hard links, pipes, sockets, devices, or what cannot be read\n", list.Skipped)
		return err
	}
	return nil
}

// standardOutput is the FILE that means it, also when it is a terminal.
const standardOutput = "-"

func runsDownload(ctx context.Context, cmd *cli.Command, id uuid.UUID, args []string) error {
	path := args[0]
	if cmd.String("output") == "" && isTerminal(os.Stdout) {
		return errors.New("a file's bytes could steer this terminal; write them to a file with -o FILE, or print them all the same with -o -")
	}
	what := fmt.Sprintf("run %s: file %q", id, path)
	return receive(ctx, cmd, what, func(ctx context.Context, c *gen.Client) (*http.Response, error) { return download(ctx, c, id, path) })
}

// receive writes what a request is answered with to the file of --output, or
// standard output. Errors of what was begun say with what.
func receive(ctx context.Context, cmd *cli.Command, what string, ask func(context.Context, *gen.Client) (*http.Response, error)) error {
	file := cmd.String("output")
	write := func(body io.Reader) error {
		_, err := io.Copy(cmd.Root().Writer, body)
		return err
	}
	if file != "" && file != standardOutput {
		// What is there of the file has to go when this is interrupted.
		var cancel context.CancelFunc
		ctx, cancel = untilSignal(ctx)
		defer cancel()
		write = func(body io.Reader) error { return replaceFile(file, body) }
	}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		answer, err := ask(ctx, c)
		if err != nil {
			return err
		}
		defer answer.Body.Close() // It is at its end, or failed before.
		err = write(answer.Body)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			err = errors.New("interrupted")
		case errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("the answer broke off: a program made a file shorter meanwhile, or it cannot be read, or the server ended")
		}
		return errors.Wrap(err, what)
	})
}

// download starts a download. The caller reads the body and closes it.
func download(ctx context.Context, c *gen.Client, id uuid.UUID, path string) (*http.Response, error) {
	result, err := c.DownloadFile(ctx, gen.DownloadFileParams{Run: id, Path: path})
	if err != nil {
		return nil, err
	}
	raw, ok := result.(*gen.DownloadFileOKRawApplicationOctetStream)
	if !ok {
		return nil, errors.Errorf("run %s: unexpected answer %T", id, result)
	}
	return raw.Response, nil
}

// replaceFile makes a file of everything in content, or leaves what was there.
// It replaces a file only: in the place of /dev/null, or of a link to it, a
// file would do harm.
func replaceFile(path string, content io.Reader) (err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return errors.Errorf("%s is not a regular file, and is not replaced", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".agentrun-download-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = io.Copy(temp, content)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
