package main

import (
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/gen"
)

const (
	// maxFiles and maxFileBytes are the API's limits of a create request, for
	// the number of its files and their bytes together.
	maxFiles     = 10
	maxFileBytes = 10 << 20
	// maxInput bounds what is read from standard input, in bytes. The API has no
	// limit of its own; it is beyond what a server takes by default.
	maxInput = 64 << 20
)

// createRequest makes the request of the command's flags and arguments. What
// the API would refuse for certain is an error here, before anything is sent.
func createRequest(cmd *cli.Command, template uuid.UUID, args []string) (*gen.PublicCreateAgentRequest, error) {
	name := cmd.String("name")
	if !utf8.ValidString(name) {
		return nil, misuse("--name: it is not UTF-8")
	}
	request := &gen.PublicCreateAgentRequest{Name: name, TemplateID: template}
	if len(args) > 0 {
		input, err := readInput(args[0])
		if err != nil {
			return nil, errors.Wrap(err, "the input")
		}
		request.InputText = gen.NewOptNilString(input)
	}
	files, err := readFiles(cmd.StringSlice("file"))
	request.Files = files
	return request, err
}

// readInput returns the input, which - takes from standard input.
func readInput(arg string) (string, error) {
	if arg == "-" {
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxInput+1))
		switch {
		case err != nil:
			return "", err
		case len(raw) > maxInput:
			return "", errors.Errorf("it is longer than %d MiB", maxInput>>20)
		}
		arg = string(raw)
	}
	if !utf8.ValidString(arg) {
		return "", errors.New("it is not UTF-8; binary data goes into a --file")
	}
	return arg, nil
}

// readFiles reads what goes into the workspace, and never more than the API
// takes.
func readFiles(paths []string) ([]gen.PublicAgentFileInput, error) {
	if len(paths) > maxFiles {
		return nil, errors.Errorf("file %s: that is one more than %d", paths[maxFiles], maxFiles)
	}
	var files []gen.PublicAgentFileInput
	left := int64(maxFileBytes)
	for _, path := range paths {
		name := filepath.Base(path)
		if !utf8.ValidString(name) {
			return nil, errors.Errorf("file %q: its name is not UTF-8", path)
		}
		content, err := readFile(path, left)
		if err != nil {
			return nil, errors.Wrapf(err, "file %s", path)
		}
		left -= int64(len(content))
		files = append(files, gen.PublicAgentFileInput{
			Filename: name, ContentBase64: base64.StdEncoding.EncodeToString(content),
		})
	}
	return files, nil
}

// readFile reads a file of at most so many bytes, which may be a pipe.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) == 0:
		return nil, errors.New("it is empty, which the API does not take")
	case int64(len(content)) > most:
		return nil, errors.Errorf("with it the files have more than %d MiB together", maxFileBytes>>20)
	}
	return content, nil
}
