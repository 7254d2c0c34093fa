package gateway

import "time"

// stuckLimit is how long a client may take to read the last of an answer when
// its connection was idle for too long.
const stuckLimit = time.Second

// flow is a connection out that ends when it was idle for too long. A byte that
// moves between it and its client is a byte that it reads or writes.
type flow struct {
	*conn
	client *conn
	idle   *time.Timer
}

func newFlow(out, client *conn) *flow {
	f := &flow{conn: out, client: client}
	f.idle = time.AfterFunc(IdleLimit, func() {
		_ = out.Close()
		_ = client.SetReadDeadline(time.Now())
		_ = client.SetWriteDeadline(time.Now().Add(stuckLimit))
	})
	return f
}

// Read implements net.Conn.
func (f *flow) Read(p []byte) (int, error) {
	n, err := f.conn.Read(p)
	f.moved(n)
	return n, err
}

// Write implements net.Conn.
func (f *flow) Write(p []byte) (int, error) {
	n, err := f.conn.Write(p)
	f.moved(n)
	return n, err
}

func (f *flow) moved(n int) {
	if n > 0 {
		f.idle.Reset(IdleLimit)
	}
}

func (f *flow) end() {
	f.idle.Stop()
	_ = f.Close()
}
