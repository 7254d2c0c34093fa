package run

import (
	"net"
	"sync"

	"go.uber.org/zap"

	"agentrun/run/gateway"
	"agentrun/run/sandbox"
	"agentrun/storage"
)

// maxRefused is how many refused connections of a turn its history tells of.
const maxRefused = 20

// way is the way out of one turn's sandbox; the zero way leads nowhere.
type way struct {
	gateway *gateway.Gateway
	log     *zap.Logger
	serving sync.WaitGroup

	mu   sync.Mutex
	list []storage.NetworkRefused
}

// openWay opens the way to these hosts; without any there is none.
func openWay(hosts []string, log *zap.Logger) (*way, error) {
	w := &way{log: log}
	if len(hosts) == 0 {
		return w, nil
	}
	var err error
	w.gateway, err = gateway.New(gateway.Config{Allow: hosts, Observe: w.observe, Log: log})
	return w, err
}

// observe keeps what was refused, each address once.
func (w *way) observe(a gateway.Attempt) {
	if a.Allowed {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := storage.NetworkRefused{Host: a.Host, Port: a.Port, Reason: a.Why}
	for _, known := range w.list {
		if known == entry {
			return
		}
	}
	if len(w.list) < maxRefused {
		w.list = append(w.list, entry)
	}
}

// proxy is what the sandbox hands its listener to, nil when there is no way.
func (w *way) proxy() func(net.Listener) {
	if w.gateway == nil {
		return nil
	}
	return func(l net.Listener) {
		w.serving.Go(func() {
			if err := w.gateway.Serve(l); err != nil {
				w.log.Error("gateway", zap.Error(err))
			}
		})
	}
}

// environ tells programs of the way. Names differ from program to program.
func (w *way) environ() []string {
	if w.gateway == nil {
		return nil
	}
	const url, direct = "http://" + sandbox.ProxyAddress, "localhost,127.0.0.1,::1"
	return []string{
		"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "NO_PROXY=" + direct,
		"http_proxy=" + url, "https_proxy=" + url, "no_proxy=" + direct,
	}
}

// refused are the connections that were refused so far.
func (w *way) refused() []storage.NetworkRefused {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// close closes the way, and returns when nothing of it is left.
func (w *way) close() {
	if w.gateway != nil {
		w.gateway.Close()
		w.serving.Wait()
	}
}
