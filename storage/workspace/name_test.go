package workspace

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// safeNames are hostile and odd names, and what becomes of them in an empty
// folder.
var safeNames = []struct{ given, want string }{
	// Nothing to do.
	{"report.csv", "report.csv"},
	{"Übersicht 2026 (final).pdf", "Übersicht 2026 (final).pdf"},
	{"日本語.txt", "日本語.txt"},
	{"no extension", "no extension"},
	{"a.tar.gz", "a.tar.gz"},
	{"-rf", "-rf"},
	{"~", "~"},
	{"$(id)", "$(id)"},
	{"*?<>|:\"'", "*?<>|:\"'"},
	{"%2e%2e%2fpasswd", "%2e%2e%2fpasswd"},
	{"CON", "CON"},
	{"nul.txt", "nul.txt"},
	{"trailing.", "trailing."},
	{"trailing...", "trailing..."},
	{"trailing ", "trailing "},
	{" leading", " leading"},
	{" ", " "},
	{"a b\u00a0c", "a b\u00a0c"},
	{"👩\u200d💻.png", "👩\u200d💻.png"},
	{"می\u200cخواهم", "می\u200cخواهم"},
	{"\ufffd", "\ufffd"},
	{"e\u0301.txt", "e\u0301.txt"},
	{"file", "file"},
	{"file-2", "file-2"},

	// Separators.
	{"a/b", "b"},
	{`a\b`, "b"},
	{`C:\x`, "x"},
	{"C:x", "C:x"},
	{`C:\dir\report.csv`, "report.csv"},
	{`\\server\share\a.txt`, "a.txt"},
	{"/etc/passwd", "passwd"},
	{"../../etc/passwd", "passwd"},
	{`..\..\boot.ini`, "boot.ini"},
	{`a/b\c`, "c"},
	{`a\b/c`, "c"},
	{"a//b", "b"},
	{"a/", "file"},
	{`a\`, "file"},
	{"/", "file"},
	{`\`, "file"},
	{"//", "file"},
	{"a/..", "file"},
	{"a/.", "file"},
	{"a/.env", "env"},
	{"a\u2215b\uff0fc", "a\u2215b\uff0fc"},

	// Leading dots.
	{"", "file"},
	{".", "file"},
	{"..", "file"},
	{"...", "file"},
	{".env", "env"},
	{"..env", "env"},
	{"....env", "env"},
	{".tar.gz", "tar.gz"},
	{". .a", " .a"},
	{".-2", "-2"},

	// Control characters, and what misleads like them.
	{"a\x00b", "a_b"},
	{"\x00", "_"},
	{"a\nb", "a_b"},
	{"a\r\nb", "a__b"},
	{"tab\t.txt", "tab_.txt"},
	{"\x1b[31mred", "_[31mred"},
	{"del\x7f", "del_"},
	{"c1\u0080\u009f", "c1__"},
	{"nel\u0085", "nel_"},
	{"\n.env", "_.env"},
	{".\n", "_"},
	{"a\u2028b\u2029c", "a_b_c"},
	{"report\u202efdp.exe", "report_fdp.exe"},
	{"\u2066a\u2069", "_a_"},
	{"\u200e\u200f\u061c", "___"},

	// Invalid UTF-8.
	{"a\xffb", "a_b"},
	{"\xff\xfe", "_"},
	{"\xc0\xafetc", "_etc"},
	{"\xed\xa0\x80.txt", "_.txt"},
	{".\xff", "_"},
	{"cut\xe2\x82", "cut_"},

	// Length.
	{strings.Repeat("a", 200), strings.Repeat("a", 200)},
	{strings.Repeat("b", 201), strings.Repeat("b", 200)},
	{strings.Repeat("c", 255), strings.Repeat("c", 200)},
	{strings.Repeat("d", 251) + ".txt", strings.Repeat("d", 196) + ".txt"},
	{strings.Repeat("e", 196) + ".txt", strings.Repeat("e", 196) + ".txt"},
	{strings.Repeat("f", 197) + ".txt", strings.Repeat("f", 196) + ".txt"},
	{strings.Repeat("𝔊", 255), strings.Repeat("𝔊", 50)},
	{strings.Repeat("𝔇", 251) + ".txt", strings.Repeat("𝔇", 49) + ".txt"},
	{"x" + strings.Repeat("𝔇", 254), "x" + strings.Repeat("𝔇", 49)},
	{strings.Repeat("é", 100) + "z", strings.Repeat("é", 100)},
	{"x" + strings.Repeat("é", 100), "x" + strings.Repeat("é", 99)},
	{"g." + strings.Repeat("x", 253), "g." + strings.Repeat("x", 198)},
	{strings.Repeat("h", 200) + "." + strings.Repeat("x", 63), strings.Repeat("h", 136) + "." + strings.Repeat("x", 63)},
	{strings.Repeat("i", 200) + "." + strings.Repeat("x", 64), strings.Repeat("i", 200)},
	{strings.Repeat(".", 255), "file"},
	{strings.Repeat(".", 254) + "j", "j"},
	{strings.Repeat("k", 250) + ".", strings.Repeat("k", 199) + "."},
	{strings.Repeat("/", 254) + "l", "l"},
	{strings.Repeat("\x01", 255), strings.Repeat("_", 200)},
}

func TestSafeName(t *testing.T) {
	for _, row := range safeNames {
		got := SafeName(row.given, nil)
		if got != row.want {
			t.Errorf("SafeName(%q) = %q, want %q", row.given, got, row.want)
		}
		if again := SafeName(got, nil); again != got {
			t.Errorf("SafeName(%q) = %q, though it is safe", got, again)
		}
	}
}

// folderNames gives each name its safe name in a folder with those before it.
func folderNames(given []string) []string {
	taken := map[string]bool{}
	var names []string
	for _, g := range given {
		name := SafeName(g, func(folded string) bool { return taken[folded] })
		taken[Fold(name)] = true
		names = append(names, name)
	}
	return names
}

func TestSafeNameTaken(t *testing.T) {
	long := strings.Repeat("a", 250)
	wide := strings.Repeat("𝔊", 60)
	for name, row := range map[string]struct{ given, want []string }{
		"ten times the same": {
			[]string{"a.txt", "a.txt", "a.txt", "a.txt", "a.txt", "a.txt", "a.txt", "a.txt", "a.txt", "a.txt"},
			[]string{"a.txt", "a-2.txt", "a-3.txt", "a-4.txt", "a-5.txt", "a-6.txt", "a-7.txt", "a-8.txt", "a-9.txt", "a-10.txt"},
		},
		"the next name is taken too": {
			[]string{"a-2.txt", "a.txt", "a.txt", "A-3.TXT", "a.txt"},
			[]string{"a-2.txt", "a.txt", "a-3.txt", "A-3-2.TXT", "a-4.txt"},
		},
		"the suffix comes first": {
			[]string{"a.txt", "a.txt", "a-2.txt"},
			[]string{"a.txt", "a-2.txt", "a-2-2.txt"},
		},
		"empty ones beside a file":  {[]string{"file", "", "..", "a/"}, []string{"file", "file-2", "file-3", "file-4"}},
		"a file beside empty ones":  {[]string{"", "file", "FILE"}, []string{"file", "file-2", "FILE-3"}},
		"folding: ASCII":            {[]string{"A.txt", "a.txt", "a.TXT"}, []string{"A.txt", "a-2.txt", "a-3.TXT"}},
		"folding: long s":           {[]string{"s", "ſ", "S"}, []string{"s", "ſ-2", "S-3"}},
		"folding: Kelvin":           {[]string{"\u212a", "k", "K"}, []string{"\u212a", "k-2", "K-3"}},
		"folding: Greek sigma":      {[]string{"Σ", "σ", "ς"}, []string{"Σ", "σ-2", "ς-3"}},
		"folding: not by expansion": {[]string{"ß", "ss", "ẞ"}, []string{"ß", "ss", "ẞ-2"}},
		"alike after cleaning":      {[]string{"a\n", "a\t", "a_"}, []string{"a_", "a_-2", "a_-3"}},
		"alike after the path":      {[]string{"x/a", `y\a`, "a"}, []string{"a", "a-2", "a-3"}},
		"alike after the cut":       {[]string{long + "b", long + "c"}, []string{long[:200], long[:198] + "-2"}},
		"cut with extension":        {[]string{long + ".md", long + ".md"}, []string{long[:197] + ".md", long[:195] + "-2.md"}},
		"cut at a rune":             {[]string{wide, wide}, []string{wide[:200], wide[:196] + "-2"}},
		"two extensions":            {[]string{"a.tar.gz", "a.tar.gz"}, []string{"a.tar.gz", "a.tar-2.gz"}},
		"trailing dot":              {[]string{"a.", "a."}, []string{"a.", "a-2."}},
		"long extension":            {[]string{"a." + long, "a." + long}, []string{"a." + long[:198], "a." + long[:196] + "-2"}},
		"only an extension": {
			[]string{"." + strings.Repeat("x", 63), strings.Repeat("x", 63)},
			[]string{strings.Repeat("x", 63), strings.Repeat("x", 63) + "-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, folderNames(row.given)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// Any sequence of names gives names that are safe and differ when folded, by
// the library's own lower case too.
func TestSafeNameProperties(t *testing.T) {
	pieces := rapid.OneOf(
		rapid.SampledFrom([]string{
			".", "..", "/", `\`, "-2", "-3", "file", "a", "A", "ſ", "s", "S", "\u212a", "k", "K", ".txt", ".TXT",
			"\x00", "\n", "\u0085", "\u202e", "\u2028", "\xff", "\xed\xa0\x80", " ", "𝔊", "é",
			strings.Repeat("a", 195), strings.Repeat("𝔊", 49), "." + strings.Repeat("x", 62), "." + strings.Repeat("x", 70),
		}),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
	given := rapid.Map(rapid.SliceOfN(pieces, 0, 5), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(t *rapid.T) {
		names := folderNames(rapid.SliceOfN(given, 1, 12).Draw(t, "given"))
		folded := map[string]bool{}
		for _, name := range names {
			if fault := unsafe(name); fault != "" {
				t.Fatalf("%q %s", name, fault)
			}
			for _, key := range []string{Fold(name), "lower " + strings.ToLower(name)} {
				if folded[key] {
					t.Fatalf("%q is there twice in %q", name, names)
				}
				folded[key] = true
			}
		}
	})
}

// unsafe says what is wrong with a name, without using what made it.
func unsafe(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > 200:
		return "is too long"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsAny(name, `/\`):
		return "holds a separator"
	case strings.HasPrefix(name, "."):
		return "begins with a dot"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "holds a control character"
	case strings.ContainsAny(name, "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"):
		return "holds a character that misleads"
	}
	return ""
}

// Names that differ in lower or in upper case only never stay apart.
func TestFoldOfAllLetters(t *testing.T) {
	for _, letters := range unicode.CaseRanges {
		for r := rune(letters.Lo); r <= rune(letters.Hi); r++ {
			folded := foldRune(r)
			for _, same := range []rune{unicode.ToLower(r), unicode.ToUpper(r), unicode.ToTitle(r), unicode.SimpleFold(r), folded} {
				if foldRune(same) != folded {
					t.Errorf("%q and %q do not fold together", r, same)
				}
			}
		}
	}
}

func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"a", "A"}, {"straße", "STRAẞE"}, {"ſtop", "STOP"}, {"\u212a", "k", "K"}, {"Å", "å", "\u212b"}, {"ǅ", "Ǆ", "ǆ"}, {"I", "i", "İ", "ı"},
	} {
		for _, name := range same[1:] {
			if Fold(name) != Fold(same[0]) {
				t.Errorf("%q and %q do not fold together", same[0], name)
			}
		}
	}
	for _, name := range []string{"", "b", "A ", "Å\u0301", "ss"} {
		if Fold(name) == Fold("a") {
			t.Errorf("%q folds with a", name)
		}
	}
}
