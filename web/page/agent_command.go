package page

import "strings"

// splitWords reads a command line as a shell reads plain words: spaces and line
// ends part words, single quotes keep everything, double quotes and a backslash
// keep what is next to them. Nothing is expanded. The problem is empty or says
// what is wrong.
func splitWords(line string) (words []string, problem string) {
	var (
		word   strings.Builder
		inWord bool
		quote  rune
		escape bool
	)
	for _, r := range line {
		switch {
		case escape:
			// In double quotes a backslash is one unless it hides something.
			if quote == '"' && !strings.ContainsRune(`"\$`+"`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escape = false
		case r == '\\' && quote != '\'':
			escape, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	switch {
	case quote != 0:
		return nil, "a quote is not closed"
	case escape:
		return nil, "nothing follows the last backslash"
	case inWord:
		words = append(words, word.String())
	}
	return words, ""
}

// joinWords writes words so that splitWords reads the same ones.
func joinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\r\n\"'\\$`*?[]{}()<>|&;#~!") {
			quoted[i] = shellQuote(word)
		}
	}
	return strings.Join(quoted, " ")
}
