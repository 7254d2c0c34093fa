package handler

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const plainBody = `{"name":"x","template_id":"` + canonicalTemplate + `"}`

// TestOrdinaryBodiesAreNotReadAgain holds what serializers write in ordinary
// requests to the fast path.
func TestOrdinaryBodiesAreNotReadAgain(t *testing.T) {
	for name, body := range map[string]string{
		"compact":          plainBody,
		"pretty":           "{\n  \"name\": \"x\",\n  \"template_id\" : \"" + canonicalTemplate + "\"\n}\n",
		"ASCII only":       `{"name":"caf\u00e9 \ud83d\ude80","template_id":"` + canonicalTemplate + `"}`,
		"HTML escaped":     `{"name":"\u003cb\u003e \u0026 \u0000","template_id":"` + canonicalTemplate + `"}`,
		"simple escapes":   `{"name":"a\n\t\"b\" \\ \/","template_id":"{` + canonicalTemplate + `}"}`,
		"names in a text":  `{"name":"{\"template_id\": 1}","template_id":"urn:uuid:` + canonicalTemplate + `"}`,
		"other characters": `{"name":"é🚀","template_id":"` + strings.ReplaceAll(canonicalTemplate, "-", "") + `"}`,
	} {
		req, err := decodeRequest([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if holdsReplacement(req) || !plainTemplateID([]byte(body)) {
			t.Errorf("%s: is read again", name)
		}
		if len(hiddenIssues([]byte(body), req)) > 0 {
			t.Errorf("%s: not accepted", name)
		}
	}
}

// TestHiddenFaultsAreFound has what the decoder accepts and the contract does
// not, each spelled so that a careless look at the text misses it.
func TestHiddenFaultsAreFound(t *testing.T) {
	for _, member := range []string{
		`"template_id":"(` + canonicalTemplate + `)"`,
		`"\u0074emplate_id":"(` + canonicalTemplate + `)"`,
		`"template\u005fid":"(` + canonicalTemplate + `)"`,
		`"template\u005Fid" : "URN:UUID:` + canonicalTemplate + `"`,
		`"te\u006Dplate_id":"x` + canonicalTemplate + `x"`,
		`"name":"\ud800"`,
		`"input_text":"\udc00\ud800"`,
		`"files":[{"filename":"\ud800","content_base64":"QQ=="}]`,
		`"files":[{"filename":"a","content_base64":"\ud800"}]`,
		"\"name\":\"\xff\"",
		"\"e\":\"\xe2\x82\"",
		"\"\xc0\xaf\":0",
	} {
		body := []byte(strings.TrimSuffix(plainBody, "}") + "," + member + "}")
		req, err := decodeRequest(body)
		if err != nil {
			t.Errorf("%q: the decoder refuses it: %v", member, err)
			continue
		}
		if len(hiddenIssues(body, req)) == 0 {
			t.Errorf("%q is accepted", member)
		}
	}
}

// TestHiddenIssuesAreExact compares the fast path with the complete list, on
// bodies made to hide a second template_id, or a text that is none.
func TestHiddenIssuesAreExact(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(hidingBody(t))
		req, err := decodeRequest(body)
		if err != nil {
			return
		}
		issues := bodyIssues("application/json", body)
		if hidden := hiddenIssues(body, req); len(hidden) != len(issues) {
			t.Fatalf("%q: %v are hidden, but the issues are %v", body, hidden, issues)
		}
		if len(issues) == 0 {
			accepted++
		} else {
			refused++
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d bodies accepted, %d refused: the bodies test nothing", accepted, refused)
	}
}

func hidingBody(t *rapid.T) string {
	name := rapid.SampledFrom([]string{
		`"name"`, `"template_id"`, `"\u0074emplate_id"`, `"template\u005Fid"`, `"templ\u0061te_id"`, `"x\"template_id"`,
		`"template_id\u0000"`, `"input_text"`, `"e"`, `"\ud800template_id"`, `"Template_id"`, "\"e\xff\"", "\"template_id\xc3\"",
	})
	id := rapid.SampledFrom([]string{
		canonicalTemplate, "{" + canonicalTemplate + "}", "(" + canonicalTemplate + ")", "URN:UUID:" + canonicalTemplate,
		"urn:uuid:" + canonicalTemplate, `\u0035` + canonicalTemplate[1:], `\u0028` + canonicalTemplate + ")",
		strings.ReplaceAll(canonicalTemplate, "-", ""), "a", "",
	})
	text := rapid.SampledFrom([]string{
		"a", "\uFFFD", `\ufffd`, `\ud800`, `\ud83d\ude80`, `\udc00\ud800`, "\xff", `\\ud800`, `\u0074`, `\"template_id\":`, "",
	})
	quoted := func() string {
		if rapid.Bool().Draw(t, "id") {
			return `"` + id.Draw(t, "id text") + `"`
		}
		return `"` + text.Draw(t, "text") + text.Draw(t, "text") + `"`
	}
	members := []string{`"name":"x"`, fmt.Sprintf(`"template_id"%s:%s"%s"`,
		rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "blank"), rapid.SampledFrom([]string{"", "\t"}).Draw(t, "blank"), id.Draw(t, "id"))}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			members = append(members, name.Draw(t, "name")+":"+quoted())
		case 1:
			members = append(members, `"e":{`+name.Draw(t, "name")+":"+quoted()+"}")
		case 2:
			members = append(members, `"e":[`+name.Draw(t, "name")+"]")
		case 3:
			members = append(members, fmt.Sprintf(`"files":[{"filename":%s,"content_base64":%s,%s:1}]`,
				quoted(), quoted(), name.Draw(t, "name")))
		case 4:
			members = append(members, `"input_text":`+quoted())
		}
	}
	members = rapid.Permutation(members).Draw(t, "order")
	return "{" + strings.Join(members, ",") + "}"
}

// largeBody is an ordinary request with files of 10 MiB in all.
func largeBody() []byte {
	content := strings.Repeat("QUJD", 14_000_000/4)
	return []byte(strings.TrimSuffix(plainBody, "}") +
		`,"input_text":"caf\u00e9\n","files":[{"filename":"a","content_base64":"` + content + `"}]}`)
}

func TestHiddenIssuesAllocateNothing(t *testing.T) {
	body := largeBody()
	req, err := decodeRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(5, func() { hiddenIssues(body, req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHiddenIssues(b *testing.B) {
	for name, body := range map[string][]byte{"small": []byte(plainBody), "14MB": largeBody()} {
		req, err := decodeRequest(body)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if len(hiddenIssues(body, req)) > 0 {
					b.Fatal("not accepted")
				}
			}
		})
		b.Run(name+"/decoder", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := decodeRequest(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/issues", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				bodyIssues("application/json", body)
			}
		})
	}
}
