package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// at returns the n-th of IDs that sort like their numbers.
func at(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012d", n))
}

func knows(runs ...uuid.UUID) func(uuid.UUID) (bool, error) {
	return func(run uuid.UUID) (bool, error) {
		for _, r := range runs {
			if r == run {
				return true, nil
			}
		}
		return false, nil
	}
}

// plant makes a folder with one file in it.
func plant(t *testing.T, s *Store, name string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(s.path, name), 0o700))
	must(t, os.WriteFile(filepath.Join(s.path, name, "a"), []byte(name), 0o600))
}

func TestRecover(t *testing.T) {
	id := func(n int) string { return at(n).String() }
	folders := func(names ...string) func(*testing.T, *Store, outside) {
		return func(t *testing.T, s *Store, _ outside) {
			for _, name := range names {
				plant(t, s, name)
			}
		}
	}
	for _, row := range []struct {
		name    string
		prepare func(*testing.T, *Store, outside)
		known   []uuid.UUID
		want    Recovered
		left    []string
		shelf   []string // what .orphans holds, when it is among left
	}{
		{name: "nothing"},
		{
			name:    "a run with its folder",
			prepare: folders(id(1)), known: []uuid.UUID{at(1)},
			left: []string{id(1)},
		},
		{
			name:  "a run without one",
			known: []uuid.UUID{at(1)},
		},
		{
			name:    "deliveries and removals under way",
			prepare: folders(id(1)+".new", id(2)+".gone", id(3)+".gone", id(3)+".new", id(3)),
			known:   []uuid.UUID{at(1), at(3)},
			want:    Recovered{Removed: []uuid.UUID{at(1), at(2), at(3), at(3)}},
			left:    []string{id(3)},
		},
		{
			name:    "folders without a run",
			prepare: folders(id(1), id(2), id(3)), known: []uuid.UUID{at(2)},
			want: Recovered{Orphaned: []Orphan{{at(1), id(1)}, {at(3), id(3)}}},
			left: []string{".orphans", id(2)}, shelf: []string{id(1), id(3)},
		},
		{
			name:    "an orphan's name is taken",
			prepare: folders(id(1), ".orphans/"+id(1), ".orphans/"+id(1)+"-2"),
			want:    Recovered{Orphaned: []Orphan{{at(1), id(1) + "-3"}}},
			left:    []string{".orphans"}, shelf: []string{id(1), id(1) + "-2", id(1) + "-3"},
		},
		{
			name:    "foreign names",
			prepare: folders("backup.new", "lost+found", "{"+id(1)+"}", id(1)+".old", "A"+id(1)[1:], id(1)[:35], ".new", ".gone", "AAAAAAAA"+id(1)[8:]),
			want: Recovered{Foreign: []string{
				".gone", ".new", id(1)[:35], id(1) + ".old", "A" + id(1)[1:], "AAAAAAAA" + id(1)[8:], "backup.new", "lost+found", "{" + id(1) + "}",
			}},
			left: []string{
				".gone", ".new", id(1)[:35], id(1) + ".old", "A" + id(1)[1:], "AAAAAAAA" + id(1)[8:], "backup.new", "lost+found", "{" + id(1) + "}",
			},
		},
		{
			name: "no folders",
			prepare: func(t *testing.T, s *Store, out outside) {
				must(t, os.Symlink(out.dir, s.Path(at(1))))
				must(t, os.WriteFile(s.Path(at(2)), nil, 0o600))
				must(t, os.Symlink(out.dir, s.Path(at(3))+".new"))
				must(t, os.Symlink(out.file, s.Path(at(4))+".gone"))
				must(t, os.WriteFile(s.Path(at(5))+".new", nil, 0o600))
			},
			want: Recovered{
				Removed: []uuid.UUID{at(3), at(4), at(5)},
				Foreign: []string{id(1), id(2)},
			},
			left: []string{id(1), id(2)},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := mustOpen(t)
			out := makeOutside(t)
			if row.prepare != nil {
				row.prepare(t, s, out)
			}
			got, err := s.Recover(knows(row.known...))
			must(t, err)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Fatal(diff)
			}
			check := func() {
				t.Helper()
				wantNames(t, s.path, row.left...)
				if row.shelf != nil {
					wantNames(t, filepath.Join(s.path, ".orphans"), row.shelf...)
				}
				out.wantUntouched(t)
			}
			check()
			for _, orphan := range got.Orphaned {
				wantContent(t, filepath.Join(s.path, ".orphans", orphan.Name, "a"), orphan.Run.String())
			}
			again, err := s.Recover(knows(row.known...))
			must(t, err)
			if diff := cmp.Diff(Recovered{Foreign: row.want.Foreign}, again); diff != "" {
				t.Fatalf("a second time: %s", diff)
			}
			check()
		})
	}
}

func TestRecoverAfterCrash(t *testing.T) {
	s := mustOpen(t)
	begun, written, refused, accepted := at(1), at(2), at(3), at(4)
	mustDeliver(t, s, begun)
	mustAdd(t, mustDeliver(t, s, written), "a", "a")
	for _, run := range []uuid.UUID{refused, accepted} {
		d := mustDeliver(t, s, run)
		mustAdd(t, d, "a", run.String())
		must(t, d.Commit())
	}

	next, err := Open(s.path)
	must(t, err)
	defer next.Close()
	got, err := next.Recover(knows(accepted))
	must(t, err)
	want := Recovered{
		Removed:  []uuid.UUID{begun, written},
		Orphaned: []Orphan{{refused, refused.String()}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	wantContent(t, filepath.Join(next.Path(accepted), "a"), accepted.String())
	must(t, mustDeliver(t, next, begun).Commit())
}

func TestRecoverEndsWhenRunsCannotBeRead(t *testing.T) {
	s := mustOpen(t)
	plant(t, s, at(1).String()+".new")
	plant(t, s, at(2).String())
	plant(t, s, at(3).String())
	cause := errors.New("store unavailable")
	got, err := s.Recover(func(uuid.UUID) (bool, error) { return false, cause })
	wantErr(t, "Recover", err, cause)
	if diff := cmp.Diff(Recovered{Removed: []uuid.UUID{at(1)}}, got); diff != "" {
		t.Fatal(diff)
	}
	wantNames(t, s.path, at(2).String(), at(3).String())
}

// A .orphans that is no folder keeps the orphans where they are, and nothing
// else from being done.
func TestRecoverWithoutShelf(t *testing.T) {
	for _, kind := range []string{"file", "link"} {
		t.Run(kind, func(t *testing.T) {
			s := mustOpen(t)
			out := makeOutside(t)
			shelf := filepath.Join(s.path, ".orphans")
			if kind == "file" {
				must(t, os.WriteFile(shelf, []byte("x"), 0o600))
			} else {
				must(t, os.Symlink(out.dir, shelf))
			}
			plant(t, s, at(1).String())
			plant(t, s, at(2).String()+".new")
			got, err := s.Recover(knows())
			wantErr(t, "Recover", err, ErrExist)
			if diff := cmp.Diff(Recovered{Removed: []uuid.UUID{at(2)}}, got); diff != "" {
				t.Fatal(diff)
			}
			wantNames(t, s.path, ".orphans", at(1).String())
			wantContent(t, filepath.Join(s.Path(at(1)), "a"), at(1).String())
			out.wantUntouched(t)
		})
	}
}
