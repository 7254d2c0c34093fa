package handler

import (
	"net/http"
	"strings"
	"testing"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// TestValidationOverHTTP sends every case of testdata/validation.jsonl as a
// client would.
func TestValidationOverHTTP(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	cases := loadCases(t, acc.agent.ID.String())
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			path, method, headers := c.Path, c.Method, []string{"Authorization", "Bearer " + acc.secret}
			if method == "" {
				method = http.MethodPost
			}
			if path == "" {
				path = "/v1/agents"
			}
			if c.ContentType != nil {
				headers = append(headers, "Content-Type", *c.ContentType)
			}
			got := a.send(method, path, string(c.Body), headers...)
			checkCase(t, c, got.status, got.header.Get("Content-Type"), []byte(got.body))
			if got.status >= 500 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

// TestHostileBodiesOverHTTP sends what no client means; the answer is a refusal of the
// documented shape, never a fault of ours.
func TestHostileBodiesOverHTTP(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	template := acc.agent.ID.String()
	for name, body := range map[string]string{
		"deep arrays":        strings.Repeat("[", 100_000),
		"deep in a field":    `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"deep objects":       strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		"many keys":          `{"k":1` + strings.Repeat(`,"k":1`, 1_000_000) + `}`,
		"a long number":      `{"name":` + strings.Repeat("9", 5000) + `,"template_id":"` + template + `"}`,
		"a huge exponent":    `{"name":1e999999999,"template_id":1e-999999999}`,
		"byte order mark":    "\ufeff{}",
		"UTF-16":             "\xff\xfe{\x00}\x00",
		"gzip":               "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00",
		"NUL":                "\x00",
		"lone surrogate":     `{"name":"\ud800","template_id":"` + template + `"}`,
		"reversed surrogate": `{"name":"\udc00\ud800","template_id":"` + template + `"}`,
		"invalid UTF-8":      "{\"name\":\"\xe9\",\"template_id\":\"" + template + "\"}",
		"overlong UTF-8":     "{\"name\":\"\xc0\xaf\",\"template_id\":\"" + template + "\"}",
	} {
		got := acc.post(body)
		if got.status != http.StatusUnprocessableEntity || !strings.HasPrefix(got.body, `{"detail":[{`) {
			t.Errorf("%s: %d %.200s", name, got.status, got.body)
		}
		if len(got.body) > 64<<10 {
			t.Errorf("%s: an answer of %d bytes", name, len(got.body))
		}
	}
}
