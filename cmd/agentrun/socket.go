package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// The path of a unix socket has at most 107 bytes, and that of a data directory
// may have more. Both sides therefore reach the socket through a descriptor of
// the directory: /proc/self/fd/N/agentrun.sock.

// listenSocket listens on the socket in dir, for the owner of dir only. The
// caller holds the database of dir, so that a socket which is there already is
// a left-over.
func listenSocket(dir string) (net.Listener, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	path := socketPath(folder)
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Wrap(err, "socket")
	}
	// A mode that is set afterwards would leave a moment for others to connect.
	before := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(before)
	if err != nil {
		return nil, errors.Wrapf(err, "socket %s", filepath.Join(dir, socketName))
	}
	// The path is good only as long as folder is open.
	l.SetUnlinkOnClose(false)
	return l, nil
}

// dialSocket connects to the server of dir.
func dialSocket(ctx context.Context, dir string) (net.Conn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return new(net.Dialer).DialContext(ctx, "unix", socketPath(folder))
}

func socketPath(folder *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName)
}
