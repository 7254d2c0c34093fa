package web

import (
	"net/http"

	"agentrun/storage"
)

// Health answers /healthz (the process is up) and /readyz (the store answers),
// without authentication. ready says whether the server still takes work.
func Health(store *storage.Store, ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !ready() || store.Ping(r.Context()) != nil {
			answer(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
