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
	// toHosts is true when it leads to hosts, and not to models alone.
	toHosts bool
	models  []gateway.Provider
	log     *zap.Logger
	serving sync.WaitGroup

	mu   sync.Mutex
	list []storage.NetworkRefused
}

// openWay opens the way to these hosts and models; without any there is none.
func openWay(hosts []string, models gateway.Models, log *zap.Logger) (*way, error) {
	w := &way{toHosts: len(hosts) > 0, models: models.Providers, log: log}
	if !w.toHosts && len(w.models) == 0 {
		return w, nil
	}
	var err error
	w.gateway, err = gateway.New(gateway.Config{Allow: hosts, Observe: w.observe, Models: models, Log: log})
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

// placeholder is what programs have for a key. They do not start without one.
const placeholder = "agentrun-adds-the-key"

// environ tells programs of the way. Names differ from program to program.
func (w *way) environ() []string {
	const url, direct = "http://" + sandbox.ProxyAddress, "localhost,127.0.0.1,::1"
	var env []string
	if w.toHosts {
		env = append(env,
			"HTTP_PROXY="+url, "HTTPS_PROXY="+url, "NO_PROXY="+direct,
			"http_proxy="+url, "https_proxy="+url, "no_proxy="+direct)
	}
	if len(w.models) > 0 {
		env = append(env, "AGENTRUN_GATEWAY="+url)
	}
	told := map[gateway.Dialect]bool{}
	for _, p := range w.models {
		if told[p.Dialect] {
			continue // Programs know of one, and the first is it.
		}
		told[p.Dialect] = true
		base := url + "/" + p.Name
		if p.Dialect == gateway.Anthropic {
			env = append(env, "ANTHROPIC_BASE_URL="+base, "ANTHROPIC_API_KEY="+placeholder)
			continue
		}
		// Many look for the version at its end.
		env = append(env, "OPENAI_BASE_URL="+base+"/v1", "OPENAI_API_BASE="+base+"/v1", "OPENAI_API_KEY="+placeholder)
	}
	return env
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
