package web

import (
	"archive/zip"
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
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
	if _, err = io.Copy(w, file); err != nil {
		m.brokenOff(err)
	}
	return nil
}

// DownloadArchive implements downloadArchive.
func (m *Management) DownloadArchive(ctx context.Context, params gen.DownloadArchiveParams, w http.ResponseWriter) error {
	run, err := m.store.Run(ctx, storage.RunID{UUID: params.Run})
	if err != nil {
		return err
	}
	if run.Deleted {
		return errors.Wrapf(workspace.ErrNoFile, "run %s was deleted", run.ID)
	}
	found, err := m.spaces.List(params.Run)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/zip")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": run.ID.String() + ".zip"}))
	header.Set("X-Content-Type-Options", "nosniff")
	archive := zip.NewWriter(w)
	for _, entry := range found.Files {
		if err := m.archiveFile(archive, params.Run, entry); err != nil {
			m.brokenOff(err)
		}
	}
	if err := archive.Close(); err != nil {
		m.brokenOff(err)
	}
	return nil
}

// archiveFile adds a file to the archive. One that went away since it was listed
// is left out, as if it had gone before.
func (m *Management) archiveFile(archive *zip.Writer, run uuid.UUID, entry workspace.Entry) error {
	file, err := m.spaces.OpenFile(run, entry.Path)
	if errors.Is(err, workspace.ErrNoFile) || errors.Is(err, workspace.ErrFileRefused) || errors.Is(err, workspace.ErrInvalidPath) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() // It is only read.
	header := &zip.FileHeader{Name: entry.Path, Method: zip.Deflate, Modified: entry.Modified}
	header.SetMode(0o644)
	out, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}

// brokenOff ends an answer in the middle, so that it cannot look complete. Offline
// the log goes to the one who sees the download fail; and a client that has gone
// concerns nobody.
func (m *Management) brokenOff(err error) {
	if errors.Is(err, workspace.ErrCutShort) && !m.offline {
		m.log.Warn("download broken off", zap.Error(err))
	}
	panic(http.ErrAbortHandler)
}

func fileToAPI(e workspace.Entry) gen.File {
	return gen.File{Path: e.Path, Size: e.Size, ModifiedAt: e.Modified}
}
