package workspace

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName is how many bytes a name may have. Filesystems take 255; what is
	// left is for those who copy the file and add to its name.
	maxName = 200

	// maxExtension is how many bytes, dot included, still count as an
	// extension that is worth keeping when a name is cut.
	maxExtension = 64

	nameless = "file"
)

// SafeName makes the name of a file in a workspace from one that somebody
// gave. The result is valid UTF-8 of 1 to 200 bytes, without separators and
// control characters, does not begin with a dot, and is not taken:
//
//   - The part after the last / or \ counts.
//   - Each control character (C0, DEL, C1) becomes _, and with them what
//     misleads a reader of the name in the same way: line and paragraph
//     separators, and the marks that change the direction of writing (Unicode's
//     Bidi_Control). So does each run of invalid UTF-8. Joiners and other
//     invisible characters stay, since scripts and emoji need them.
//   - Leading dots are taken off.
//   - An empty name becomes "file".
//   - A name of more than 200 bytes is cut at a rune, in front of its
//     extension. An extension of more than 64 bytes is not spared.
//   - A taken name gets -2, -3 … in front of the extension, within 200 bytes.
//
// Everything else stays as given, trailing dots and blanks and the device
// names of other systems included.
//
// taken is asked with folded names (see Fold) until it says false; nil means
// that no name is taken.
func SafeName(given string, taken func(folded string) bool) string {
	name := strings.ToValidUTF8(given, "_")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(harmless, name)
	name = strings.TrimLeft(name, ".")
	if name == "" {
		name = nameless
	}
	stem, ext := splitExtension(name)
	name = cut(stem, maxName-len(ext)) + ext
	for n := 2; taken != nil && taken(Fold(name)); n++ {
		tail := "-" + strconv.Itoa(n) + ext
		name = cut(stem, maxName-len(tail)) + tail
	}
	return name
}

// Fold returns what two names have in common that differ in case only: a and
// A, s and ſ, k and the Kelvin sign, and i with and without its dot. It folds
// rune by rune, so ß stays apart from ss, and a letter with an accent from the
// letter and the accent. The result is for comparing, not for showing.
func Fold(name string) string { return strings.Map(foldRune, name) }

// foldRune returns the least of the runes that fold together with r. Simple
// folding leaves the Turkish letters i alone; lower and upper case do not.
func foldRune(r rune) rune {
	r = unicode.ToUpper(unicode.ToLower(r))
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

func harmless(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
		return '_'
	}
	return r
}

// splitExtension splits name, which does not begin with a dot, at its last dot.
func splitExtension(name string) (stem, ext string) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot > maxExtension {
		return name, ""
	}
	return name[:dot], name[dot:]
}

// cut returns as many whole runes from the start of s as fit into limit bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
