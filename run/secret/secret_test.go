package secret

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"go.uber.org/zap/zapcore"
)

func TestEnviron(t *testing.T) {
	set := newSet([]string{"B", "A"}, []string{"value=b ", "line\nline"})
	if got := set.Environ(); !slices.Equal(got, []string{"B=value=b ", "A=line\nline"}) {
		t.Errorf("got %q", got)
	}
	if got := (Set{}).Environ(); len(got) != 0 {
		t.Errorf("the zero Set has %q", got)
	}
}

func TestSetPrintsNamesOnly(t *testing.T) {
	set := newSet([]string{"B", "A"}, []string{"value-of-b", "value-of-a"})
	type holder struct {
		Exported Set
		hidden   Set
		pointer  *Set
	}
	held := holder{set, set, &set}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T", "%w"} {
		for _, printed := range []any{set, &set, []Set{set}, map[string]Set{"a": set}, held, &held, any(set)} {
			checkHidden(t, verb, fmt.Sprintf(verb, printed))
		}
	}
	for _, printed := range []any{set, &set, held} {
		raw, err := json.Marshal(printed)
		if err != nil {
			t.Fatal(err)
		}
		checkHidden(t, "JSON", string(raw))
		core, logs := observer.New(zapcore.DebugLevel)
		zap.New(core).Info("text", zap.Any("any", printed), zap.Reflect("reflect", printed))
		encoded, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).EncodeEntry(zapcore.Entry{}, logs.All()[0].Context)
		if err != nil {
			t.Fatal(err)
		}
		checkHidden(t, "zap", encoded.String())
	}
	raw, _ := json.Marshal(held.Exported)
	for got, want := range map[string]string{
		set.String():             "secrets B, A",
		set.GoString():           "secrets B, A",
		fmt.Sprintf("%#v", set):  "secrets B, A",
		fmt.Sprintf("%d", set):   "secrets B, A",
		string(raw):              `["B","A"]`,
		Set{}.String():           "no secrets",
		fmt.Sprintf("%v", Set{}): "no secrets",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if raw, err := json.Marshal(Set{}); string(raw) != "[]" || err != nil {
		t.Errorf("the zero Set is %s, %v", raw, err)
	}
}

// checkHidden looks for the values as text, hexadecimal and lists of bytes.
func checkHidden(t *testing.T, how, text string) {
	t.Helper()
	for _, trace := range []string{"value-of", "76616c7565", "76616C7565", "118 97 108 117 101", "0x76, 0x61"} {
		if strings.Contains(text, trace) {
			t.Errorf("%s printed %s", how, text)
		}
	}
}
