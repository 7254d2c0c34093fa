package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestListAndCall(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		s := mustOpen(t, h.config("good"))
		if !s.Has("good__echo") || s.Has("echo") || s.ReadOnly("good__echo") {
			t.Error("the tool has another name, or its server's word counts")
		}
		for _, tool := range s.Tools() {
			if tool.Name != "good__echo" {
				continue
			}
			var schema any
			if err := json.Unmarshal(tool.Schema, &schema); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"type": "object", "required": []any{"text"}, "additionalProperties": false,
				"properties": map[string]any{"text": map[string]any{"type": "string", "description": "what to say"}},
			}
			if diff := cmp.Diff(want, schema); diff != "" || tool.Description != "says the same" {
				t.Errorf("%q %s", tool.Description, diff)
			}
		}
		works(t, s, "good__echo", `{"text":"hello, world"}`, "hello, world")
		works(t, s, "good__echo", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`, strings.Repeat("x", 1<<20))
	})
}

func TestResults(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("good"))
	works(t, s, "good__mixed", "{}", "first\n[image image/png, 1234 bytes]\n[audio audio/wav, 5 bytes]\n[link file:///a a]\n"+
		"[resource file:///b text/plain, 6 bytes]\ninside\nlast")
	works(t, s, "good__structured", "", `{"degrees":21}`)
	works(t, s, "good__ask", "", "sampling refused: true; elicitation refused: true; roots: false")
	fails(t, s, "good__fail", "{}", "no such city")
	fails(t, s, "good__refuse", "{}", "these arguments never")
	fails(t, s, "good__silent_failure", "{}", "the tool failed and said nothing")
	much := call(t, s, "good__much", "{}")
	if len(much.Text) > maxResult || !utf8.ValidString(much.Text) || !strings.HasSuffix(much.Text, " bytes left out]") || much.Failed {
		t.Errorf("%d bytes, ending with %q", len(much.Text), much.Text[len(much.Text)-50:])
	}
}

func TestBadCalls(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("good"))
	for _, row := range []struct{ tool, arguments, says string }{
		{"good__missing", "{}", `there is no tool "good__missing"`},
		{"echo", "{}", `there is no tool "echo"`},
		{"good__echo", "[1]", "the arguments are no JSON object"},
		{"good__echo", "null", "the arguments are no JSON object"},
		{"good__echo", `{"text":`, "the arguments are no JSON object"},
		{"good__echo", `{"text":"a"} and more`, "the arguments are no JSON object"},
	} {
		fails(t, s, row.tool, row.arguments, row.says)
	}
	works(t, s, "good__echo", ` {"text":"still here"} `, "still here")
}

func TestCallsAtOnce(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("good"))
	var calls []*pending
	for range together {
		calls = append(calls, start(t.Context(), s, "good__meet", "{}"))
	}
	for _, c := range calls {
		if <-c.done; c.err != nil || c.result.Text != "met" {
			t.Errorf("%+v, %v", c.result, c.err)
		}
	}
}

func TestTwoServers(t *testing.T) {
	h := plainHost(t)
	cfg := h.config("good", "good", "dies")
	cfg.Servers[1].Name = "other"
	s := open(t, cfg)
	onlyProblem(t, s, "dies", "exit code 3", "no configuration found")
	works(t, s, "good__echo", `{"text":"one"}`, "one")
	works(t, s, "other__echo", `{"text":"two"}`, "two")
	fails(t, s, "other__die", "{}", "the tool server other: it ended with exit code 7")
	works(t, s, "good__echo", `{"text":"not concerned"}`, "not concerned")
}

func TestNoServers(t *testing.T) {
	s := mustOpen(t, Config{})
	if len(s.Tools()) != 0 || s.Has("") {
		t.Error("there are tools")
	}
	fails(t, s, "x", "{}", "there is no tool")
}

func TestNamesAreSafeAndUnique(t *testing.T) {
	cfg := plainHost(t).config("odd", "odd")
	cfg.Servers[0].Name, cfg.Servers[1].Name = "web.1", "web_1"
	s := open(t, cfg)
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
		if tool.Name == "web_1__talker" && (len(tool.Description) > maxDescription || !utf8.ValidString(tool.Description) || tool.Description == "") {
			t.Errorf("a description of %d bytes", len(tool.Description))
		}
	}
	long := "web_1__" + strings.Repeat("long", 15)[:maxName-len("web_1__")]
	if diff := cmp.Diff([]string{
		"web_1__a_b_c_d", "web_1__a_b_c_d_2", long, long[:62] + "_2", "web_1__talker",
		"web_1__a_b_c_d_3", "web_1__a_b_c_d_4", long[:62] + "_3", long[:62] + "_4", "web_1__talker_2",
	}, names); diff != "" {
		t.Error(diff)
	}
	if p := s.Problems(); len(p) != 2 || !strings.Contains(p[1].Reason, `the tool "big" is left out`) {
		t.Errorf("problems: %+v", p)
	}
	for _, name := range names {
		works(t, s, name, `{"text":"x"}`, "x")
	}
}

func TestManyTools(t *testing.T) {
	s := open(t, plainHost(t).config("many"))
	onlyProblem(t, s, "many", "more than 128 tools")
	if n := len(s.Tools()); n != maxTools {
		t.Errorf("%d tools", n)
	}
}

// A server of a protocol to come does not know the handshake of today.
func TestNewestProtocol(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("modern"))
	if v := s.servers[0].link.session.InitializeResult().ProtocolVersion; v <= usualVersion {
		t.Errorf("it speaks %s", v)
	}
	works(t, s, "modern__echo", `{"text":"hello"}`, "hello")
	works(t, s, "modern__structured", "", `{"degrees":21}`)
}
