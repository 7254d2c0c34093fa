package web

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/storage/workspace"
	"agentrun/web/gen"
)

// ListFiles implements listFiles.
func (m *Management) ListFiles(ctx context.Context, params gen.ListFilesParams) (*gen.FileList, error) {
	run, err := m.store.Run(ctx, storage.RunID{UUID: params.Run})
	if err != nil {
		return nil, err
	}
	var found workspace.Listing
	if !run.Deleted {
		if found, err = m.spaces.List(params.Run); err != nil {
			return nil, err
		}
	}
	return &gen.FileList{Files: each(found.Files, fileToAPI), More: found.More, Skipped: found.Skipped}, nil
}

// DownloadFile implements downloadFile. It writes the answer itself: a stream
// that breaks off must not go on with a problem document, and must not look
// complete.
func (m *Management) DownloadFile(ctx context.Context, params gen.DownloadFileParams, w http.ResponseWriter) error {
	run, err := m.store.Run(ctx, storage.RunID{UUID: params.Run})
	if err != nil {
		return err
	}
	if run.Deleted {
		return errors.Wrapf(workspace.ErrNoFile, "run %s was deleted", run.ID)
	}
	file, err := m.spaces.OpenFile(params.Run, params.Path)
	if err != nil {
		return err
	}
	defer file.Close() // It is only read.
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(params.Path)}))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, err = io.Copy(w, file)
	// Offline the log goes to the one who sees the download fail; and a client
	// that has gone concerns nobody.
	if errors.Is(err, workspace.ErrCutShort) && !m.offline {
		m.log.Warn("download broken off", zap.Error(err))
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func fileToAPI(e workspace.Entry) gen.File {
	return gen.File{Path: e.Path, Size: e.Size, ModifiedAt: e.Modified}
}
