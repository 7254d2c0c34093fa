package main

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// clearRest clears a terminal from the cursor to the end of the line,
	// clearLine the whole line.
	clearRest = "\x1b[K"
	clearLine = "\r" + clearRest

	// usualColumns are those of a terminal that does not say how wide it is.
	usualColumns = 80
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// columns is how wide a terminal is.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usualColumns
	}
	return int(size.Col)
}

// cut shortens text to so many columns of a terminal. The characters of some
// scripts take two; that is assumed of a few that take one.
func cut(text string, columns int) string {
	const firstWide = 0x1100
	used, fits := 0, 0 // fits is where text may end when "…" follows
	for i, r := range text {
		width := 1
		if r >= firstWide && r != '…' {
			width = 2
		}
		if used+1 <= columns {
			fits = i
		}
		if used += width; used > columns {
			return text[:fits] + "…"
		}
	}
	return text
}
