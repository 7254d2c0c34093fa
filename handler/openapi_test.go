package handler

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContractIsServedVerbatim(t *testing.T) {
	a := newAPI(t)
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	got := a.send(http.MethodGet, "/v1/openapi.json", "")
	if got.status != 200 || got.body+"\n" != string(file) || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d, %q, %d bytes of %d", got.status, got.header.Get("Content-Type"), len(got.body), len(file))
	}
	tag := got.header.Get("ETag")
	for _, c := range []struct {
		name   string
		header []string
		status int
	}{
		{"the same tag", []string{"If-None-Match", tag}, 304},
		{"one of several", []string{"If-None-Match", `"other", W/` + tag}, 304},
		{"any", []string{"If-None-Match", "*"}, 304},
		{"another tag", []string{"If-None-Match", `"other"`}, 200},
		{"a range", []string{"Range", "bytes=0-9"}, 200},
		{"another condition", []string{"If-Match", `"other"`}, 200},
		{"a date", []string{"If-Modified-Since", "Tue, 01 Jan 2030 00:00:00 GMT"}, 200},
		{"a bad key", []string{"Authorization", "Bearer ak_x"}, 200},
	} {
		got := a.send(http.MethodGet, "/v1/openapi.json", "", c.header...)
		if got.status != c.status || (got.status == 304) != (got.body == "") || got.header.Get("ETag") != tag {
			t.Errorf("%s: %d, %d bytes, ETag %q, want %d", c.name, got.status, len(got.body), got.header.Get("ETag"), c.status)
		}
	}
}

// TestContractSaysWhatTheSpecificationSays holds the contract to the
// specification's versions, operations and status codes.
func TestContractSaysWhatTheSpecificationSays(t *testing.T) {
	var doc struct {
		OpenAPI string `json:"openapi"`
		Info    struct {
			Version string `json:"version"`
		} `json:"info"`
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openapiJSON, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.0" {
		t.Errorf("OpenAPI %q, version %q", doc.OpenAPI, doc.Info.Version)
	}
	got := map[string][]string{}
	for path, item := range doc.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			var operation struct {
				Responses map[string]json.RawMessage `json:"responses"`
			}
			if err := json.Unmarshal(raw, &operation); err != nil {
				t.Fatal(err)
			}
			got[method+" "+path] = slices.Sorted(maps.Keys(operation.Responses))
		}
	}
	want := map[string][]string{
		"post /v1/agents":           {"201", "401", "403", "404", "409", "413", "422"},
		"get /v1/agents/{agent_id}": {"200", "401", "404", "422", "502", "503"},
		"get /v1/openapi.json":      {"200"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
