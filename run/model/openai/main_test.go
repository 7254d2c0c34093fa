package openai

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".sse")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
