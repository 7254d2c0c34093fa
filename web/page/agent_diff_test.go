package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffRows(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		return b.String()
	}
	long := lines(20)
	for _, tt := range []struct {
		name, from, to string
		want           string
	}{
		{"the same", long, long, ""},
		{"nothing", "", "", ""},
		{"a line", "a\nb\nc\n", "a\nB\nc\n", "1/1 a|-2/0 b|+0/2 B|3/3 c"},
		{"all new", "", "a\nb", "+0/1 a|+0/2 b (open)"},
		{"all gone", "a\n", "", "-1/0 a"},
		{"a line end", "a\nb", "a\nb\n", "1/1 a|-2/0 b (open)|+0/2 b"},
		{"far apart", long, strings.NewReplacer("line 5\n", "", "line 15\n", "line 15!\n").Replace(long),
			"fold 1|2/2 line 2|3/3 line 3|4/4 line 4|-5/0 line 5|6/5 line 6|7/6 line 7|8/7 line 8|fold 3|" +
				"12/11 line 12|13/12 line 13|14/13 line 14|-15/0 line 15|+0/14 line 15!|16/15 line 16|17/16 line 17|18/17 line 18|fold 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows, err := diffRows(tt.from, tt.to)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, row := range rows {
				text := fmt.Sprintf("%s%d/%d %s", row.Sign(), row.Old, row.New, row.Text)
				if row.Kind == "fold" {
					text = fmt.Sprintf("fold %d", row.Folded)
				}
				if row.Open {
					text += " (open)"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
