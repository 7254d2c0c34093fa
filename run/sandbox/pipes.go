package sandbox

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// pipes are the three standard streams of a process: our ends and theirs.
type pipes struct {
	theirs [3]*os.File
	ours   [3]*os.File
	copied chan struct{}
	copies int
	// source is what the process reads; nil before copy.
	source io.Reader
}

func openPipes() (*pipes, error) {
	p := &pipes{copied: make(chan struct{}, 3)}
	for i := range p.theirs {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeTheirs()
			p.finish(0)
			return nil, err
		}
		if i == 0 {
			p.theirs[i], p.ours[i] = r, w
		} else {
			p.theirs[i], p.ours[i] = w, r
		}
	}
	return p, nil
}

// copy begins to move the bytes of the three streams.
func (p *pipes) copy(cmd Command) {
	stdin := cmd.Stdin
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	p.source = stdin
	for i, move := range []func(){
		func() {
			// A process need not read its input: a broken pipe is its choice.
			_, _ = io.Copy(p.ours[0], stdin)
			_ = p.ours[0].Close()
		},
		func() { receive(cmd.Stdout, p.ours[1]) },
		func() { receive(cmd.Stderr, p.ours[2]) },
	} {
		p.copies = i + 1
		go func() {
			move()
			p.copied <- struct{}{}
		}()
	}
}

// receive copies what comes out of a pipe until its end or its deadline.
func receive(w io.Writer, pipe *os.File) {
	_, err := io.Copy(w, pipe)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	// On a busy machine the deadline can pass before this goroutine has read
	// what the process left behind, and after it Read returns nothing.
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { receiveRest(w, int(fd)) })
}

// receiveRest copies what lies in a pipe at this moment, and waits for nothing:
// a process that still holds the other end could write without end.
func receiveRest(w io.Writer, fd int) {
	left, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD by its other name
	buf := make([]byte, 32<<10)
	for err == nil && left > 0 {
		var n int
		n, err = unix.Read(fd, buf[:min(left, len(buf))])
		if errors.Is(err, unix.EINTR) {
			err = nil
			continue
		}
		if n <= 0 {
			return
		}
		_, err = w.Write(buf[:n])
		left -= n
	}
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		if f != nil {
			_ = f.Close()
		}
	}
}

// finish waits for the copies, at most delay longer, and closes our ends. The
// process is over.
func (p *pipes) finish(delay time.Duration) {
	deadline := time.Now().Add(delay)
	for _, f := range p.ours {
		if f != nil {
			_ = f.SetDeadline(deadline)
		}
	}
	if c, ok := p.source.(io.Closer); ok {
		_ = c.Close() // Nobody reads any more, and its Read may wait.
	}
	for range p.copies {
		<-p.copied
	}
	for _, f := range p.ours {
		if f != nil {
			_ = f.Close()
		}
	}
}
