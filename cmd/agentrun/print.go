package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/urfave/cli/v3"
)

// table is what a command prints for people.
type table struct {
	head []string
	rows [][]string
}

// show prints value as one JSON document when --json is set, else the table.
func show(cmd *cli.Command, value any, t table) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(value)
	}
	return t.print(out)
}

func (t table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.head}, t.rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// printable makes characters visible that would steer a terminal: names come
// from clients.
func printable(s string) string {
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if steers(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printableText is printable for text of several lines.
func printableText(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j, cell := range cells {
			cells[j] = printable(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// steers says whether a character is a control or a format character, such as
// an escape or an override of the writing direction.
func steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// unknown is what a table shows where nothing is.
const unknown = "-"

func at(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
