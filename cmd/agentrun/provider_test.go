package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentrun/run"
	"agentrun/run/model"
)

func TestParseProviders(t *testing.T) {
	got, err := parseProviders([]string{
		"local=openai,http://127.0.0.1:11434/v1", "\na.b-c=anthropic,https://h/x,window=8000,silence=5m,price=claude-*:3/0.3/15,price=1/2\n\n  s=script,/srv/scripts \n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []provider{
		{name: "local", dialect: "openai", base: "http://127.0.0.1:11434/v1"},
		{name: "a.b-c", dialect: "anthropic", base: "https://h/x", window: 8000, silence: 5 * time.Minute, prices: []run.ModelPrice{
			{Models: "claude-*", Price: model.Price{Input: 3, Cached: 0.3, Output: 15}},
			{Models: "*", Price: model.Price{Input: 1, Cached: 1, Output: 2}},
		}},
		{name: "s", dialect: "script", base: "/srv/scripts"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(provider{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for value, want := range map[string]string{
		"local":                                  "it has not all parts",
		"local=openai":                           "it has not all parts",
		"local=openai,":                          "it has not all parts",
		"-x=openai,http://h":                     "it has not all parts",
		"a b=openai,http://h":                    "it has not all parts",
		"local=ollama,http://h":                  `no dialect "ollama"`,
		"local=openai,http://h,window=many":      `window "many" is no number of tokens`,
		"local=openai,http://h,window=0":         `window "0" is no number of tokens`,
		"local=openai,http://h,silence=5":        `silence "5" is no duration`,
		"local=openai,http://h,silence=-1s":      `silence "-1s" is no duration`,
		"local=openai,http://h,price=1":          "price: want INPUT/OUTPUT",
		"local=openai,http://h,price=1/2/3/4":    "price: want INPUT/OUTPUT",
		"local=openai,http://h,price=1/-2":       `price: "-2" is no amount`,
		"local=openai,http://h,price=1/NaN":      `price: "NaN" is no amount`,
		"local=openai,http://h,size=1":           `no option "size"`,
		"local=openai,http://h\nlocal=script,/a": "the name is given twice",
	} {
		if _, err := parseProviders([]string{value}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", value, err, want)
		}
	}
}

// Each provider gets its own key, and doctor tells what each one answers.
func TestProvidersAreAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
		if strings.HasPrefix(r.URL.Path, "/bad") {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"message":"wrong key: ` + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + `"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"one"},{"id":"two"}]}`))
	}))
	t.Cleanup(site.Close)
	scripts, keyFile := t.TempDir(), filepath.Join(t.TempDir(), "key")
	for path, text := range map[string]string{filepath.Join(scripts, "hello.yaml"): "steps: []\n", keyFile: "key-of-file\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doctor := exec.CommandContext(t.Context(), "agentrun", "doctor", "--providers", "--data", t.TempDir())
	doctor.Env = append(os.Environ(),
		"AGENTRUN_PROVIDER=a=openai,"+site.URL+"/v1\nc-d=anthropic,"+site.URL+"\nbad=openai,"+site.URL+"/bad\ns=script,"+scripts,
		"AGENTRUN_PROVIDER_A_KEY=key-of-a-itself", "AGENTRUN_PROVIDER_C_D_KEY_FILE="+keyFile, "AGENTRUN_PROVIDER_BAD_KEY=key-of-bad-itself",
	)
	out, err := doctor.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "commands will be refused") {
		t.Fatalf("%s\n%v", out, err)
	}
	close(asked)
	var got []string
	for a := range asked {
		got = append(got, a)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"/bad/models Bearer key-of-bad-itself", "/v1/models Bearer key-of-a-itself", "/v1/models key-of-file"}, got); diff != "" {
		t.Errorf("(-want +asked)\n%s", diff)
	}
	report := strings.Join(strings.Fields(string(out)), " ")
	for _, want := range []string{
		"provider a yes answers, with 2 models: one, two", "provider c-d yes answers, with 2 models: one, two", "provider s yes answers, with 1 models: hello",
		"provider bad no the provider refused the request (HTTP 401): wrong key: [key]",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%s\nwant it to say %q", report, want)
		}
	}
}
