package gateway

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// established is the whole answer to a CONNECT. net/http cannot write it, since
// it would announce a body.
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// tunnel moves bytes both ways until both sides have sent all that they send,
// or one of them is gone.
func tunnel(w http.ResponseWriter, out *flow) {
	_, received, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // The client left, and net/http closes what is left of it.
	}
	client := out.client
	defer client.Close()
	// A client need not wait for the answer before it sends.
	early, _ := received.Peek(received.Reader.Buffered())
	if _, err := io.WriteString(client, established); err != nil {
		return
	}
	closeBoth := func() {
		_ = client.Close()
		_ = out.Close()
	}
	var both sync.WaitGroup
	both.Go(func() {
		if !move(out, io.MultiReader(bytes.NewReader(early), client)) {
			closeBoth()
		}
	})
	both.Go(func() {
		if !move(client, out) {
			closeBoth()
		}
	})
	both.Wait()
}

// halfCloser is a connection whose two directions end apart.
type halfCloser interface {
	io.Writer
	CloseWrite() error
}

// move copies until the end of src and passes the end on, and says whether the
// other direction can go on.
func move(dst halfCloser, src io.Reader) bool {
	if _, err := io.Copy(dst, src); err != nil {
		return false
	}
	return dst.CloseWrite() == nil
}
