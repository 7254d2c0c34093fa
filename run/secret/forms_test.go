package secret

import (
	"strings"
	"testing"
)

const (
	token = "github_pat_11ABCDEFG0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefgh"
	odd   = `Tür & <Tor>/"ü?+`
	tilde = "hunter2~~>>??"

	pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\r\n  hkiG9w0BAQEFAASC\nQUJD\n-----END PRIVATE KEY-----"
)

// The encodings were made with Python 3, coreutils and openssl.
func TestFormsAreMasked(t *testing.T) {
	for _, row := range []struct{ name, value, text, want string }{
		{"as it is", tilde, "a hunter2~~>>??!", "a [secret S]!"},
		{"not UTF-8", "\xff\xfe\x01\x80", "a \xff\xfe\x01\x80\xff", "a [secret S]\xff"},

		{"base64", tilde, "aHVudGVyMn5+Pj4/Pw==.", "[secret S]."},
		{"base64 without padding", tilde, "aHVudGVyMn5+Pj4/Pw.", "[secret S]."},
		{"base64 of a URL", tilde, "aHVudGVyMn5-Pj4_Pw==.", "[secret S]."},
		{"base64 of a URL without padding", tilde, "aHVudGVyMn5-Pj4_Pw.", "[secret S]."},
		{"base64 with a newline", tilde, "aHVudGVyMn5+Pj4/Pwo=", "[secret S]"},
		{"base64 behind two bytes", tilde, "YTpodW50ZXIyfn4+Pj8/", "YTp[secret S]"},
		{"base64 between three and three bytes", tilde, "YWI6aHVudGVyMn5+Pj4/P3h5eg==", "YWI6[secret S]3h5eg=="},
		{"base64 between four and two bytes", tilde, "YWJjOmh1bnRlcjJ+fj4+Pz94eQ==", "YWJjOm[secret S]94eQ=="},
		{"base64 of a URL behind two bytes", tilde, "YTpodW50ZXIyfn4-Pj8_", "YTp[secret S]"},
		{"base64 of a URL behind four", tilde, "YWJjOmh1bnRlcjJ-fj4-Pz94eQ==", "YWJjOm[secret S]94eQ=="},
		{
			"lines of base64", token,
			"> Z2l0aHViX3BhdF8xMUFCQ0RFRkcwMTIzNDU2Nzg5YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXpB\nQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWjAxMjM0NTY3ODlhYmNkZWZnaA==\n",
			"> [secret S]\n",
		},
		{
			"shorter lines of base64 with a newline", token,
			"> Z2l0aHViX3BhdF8xMUFCQ0RFRkcwMTIzNDU2Nzg5YWJjZGVmZ2hpamtsbW5vcHFy\nc3R1dnd4eXpBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWjAxMjM0NTY3ODlhYmNk\nZWZnaAo=\n",
			"> [secret S]\n",
		},

		{"hexadecimal", odd, "0x54c3bc722026203c546f723e2f22c3bc3f2b00", "0x[secret S]00"},
		{"upper case hexadecimal", odd, "54C3BC722026203C546F723E2F22C3BC3F2B", "[secret S]"},

		{"a query", odd, "?a=T%C3%BCr+%26+%3CTor%3E%2F%22%C3%BC%3F%2B&b=", "?a=[secret S]&b="},
		{"a path", "pass word/?:@", "/a/pass%20word%2F%3F:@/b", "/a/[secret S]/b"},

		{"JSON", odd, `{"a":"Tür & <Tor>/\"ü?+"}`, `{"a":"[secret S]"}`},
		{"JSON with HTML escaped", odd, `{"a":"Tür \u0026 \u003cTor\u003e/\"ü?+"}`, `{"a":"[secret S]"}`},
		{"JSON in ASCII", odd, `{"a": "T\u00fcr & <Tor>/\"\u00fc?+"}`, `{"a": "[secret S]"}`},
		{"JSON in ASCII beyond 16 bits", "key \U0001f511", `"key \ud83d\udd11"`, `"[secret S]"`},
		{"JSON of lines", "ab\ncd\tef", `"ab\ncd\tef"`, `"[secret S]"`},

		{"a PEM block", pem, pem + "\n", "[secret S]\n"},
		{"its lines alone", pem, "1: MIIEvQIBADANBgkq\n2: hkiG9w0BAQEFAASC\n", "1: [secret S]\n2: [secret S]\n"},
		{"a line of eight bytes", "12345678\n1234567", "12345678 1234567", "[secret S] 1234567"},
		{"its lines in JSON in JSON", pem, `\\nMIIEvQIBADANBgkq\\r\\n`, `\\n[secret S]\\r\\n`},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := newSet([]string{"S"}, []string{row.value})
			if got := set.Mask(row.text); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestWhatIsNotMasked(t *testing.T) {
	for _, row := range []struct{ name, value, text string }{
		{"a part", tilde, "hunter2~~>>?"},
		{"another case", tilde, "HUNTER2~~>>??"},
		{"blanks in between", tilde, "h u n t e r 2 ~ ~ > > ? ?"},
		{"encoded twice", tilde, "YUhWdWRHVnlNbjUrUGo0L1B3PT0="},
		{"the frame of a PEM block", pem, "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"},
		{"a short line", pem, "QUJD\n"},
		{"replacement characters", "\xff\xff\xff\xff", `"\ufffd\ufffd\ufffd\ufffd"`},
		{"a value of one line without its blanks", " hunter2hunter2 ", "hunter2hunter2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := newSet([]string{"S"}, []string{row.value})
			if got := set.Mask(row.text); got != row.text {
				t.Errorf("got %q of %q", got, row.text)
			}
		})
	}
}

// The filter looks at the first bytes of each form.
func TestFormsAreLongEnough(t *testing.T) {
	for _, value := range []string{"abcd", "\xff\xff\xff\xff", "ä€", "    ", "a\nbc", "\n\n\n\n", `""""`, strings.Repeat("\n12345678", 9), token} {
		for _, form := range forms(value) {
			if len(form) < minForm {
				t.Errorf("%q has the form %q", value, form)
			}
		}
	}
}
