package workspace

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func mustDeliver(t *testing.T, s *Store, run uuid.UUID) *Delivery {
	t.Helper()
	d, err := s.Deliver(run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.dir.Close() })
	return d
}

func mustAdd(t *testing.T, d *Delivery, given, content string) File {
	t.Helper()
	f, err := d.Add(given, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDelivery(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	big := string(bytes.Repeat([]byte("0123456789abcde\n"), 10<<20/16))

	d := mustDeliver(t, s, run)
	wantNames(t, s.path, run.String()+".new")
	wantMode(t, s.Path(run)+".new", fs.ModeDir|0o700)
	got := []File{
		mustAdd(t, d, "../report.csv", "a,b\n"),
		mustAdd(t, d, "REPORT.csv", "c,d\n"),
		mustAdd(t, d, "empty", ""),
		mustAdd(t, d, "big", big),
	}
	want := []File{
		{"../report.csv", "report.csv", 4},
		{"REPORT.csv", "REPORT-2.csv", 4},
		{"empty", "empty", 0},
		{"big", "big", 10 << 20},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	must(t, d.Commit())
	must(t, d.Abort())

	wantNames(t, s.path, run.String())
	wantMode(t, s.Path(run), fs.ModeDir|0o700)
	wantNames(t, s.Path(run), "REPORT-2.csv", "big", "empty", "report.csv")
	for name, content := range map[string]string{
		"report.csv": "a,b\n", "REPORT-2.csv": "c,d\n", "empty": "", "big": big,
	} {
		wantMode(t, filepath.Join(s.Path(run), name), 0o600)
		wantContent(t, filepath.Join(s.Path(run), name), content)
	}
}

// Every hostile name goes into one folder, where many become the same: as many
// files must come out, each with its own content, under the name that Add
// reported.
func TestDeliveryOfHostileNames(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	d := mustDeliver(t, s, run)
	content := map[string]string{}
	for _, row := range safeNames {
		text := fmt.Sprintf("%q", row.given)
		content[mustAdd(t, d, row.given, text).Name] = text
	}
	must(t, d.Commit())
	wantNames(t, s.path, run.String())
	entries, err := os.ReadDir(s.Path(run))
	must(t, err)
	if len(entries) != len(safeNames) || len(content) != len(safeNames) {
		t.Fatalf("%d files under %d names, want %d", len(entries), len(content), len(safeNames))
	}
	for name, text := range content {
		wantMode(t, filepath.Join(s.Path(run), name), 0o600)
		wantContent(t, filepath.Join(s.Path(run), name), text)
	}
}

// What is in the way, be it because the filesystem folds more names together
// than Fold does, is neither replaced nor followed.
func TestAddFindsTheNameInUse(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run := mustID(t)
	d := mustDeliver(t, s, run)
	folder := s.Path(run) + ".new"
	must(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("first"), 0o600))
	must(t, os.Symlink(out.file, filepath.Join(folder, "a-2.txt")))
	must(t, os.Symlink("absent", filepath.Join(folder, "a-3.txt")))

	if f := mustAdd(t, d, "a.txt", "second"); f.Name != "a-4.txt" {
		t.Fatalf("name %q", f.Name)
	}
	must(t, d.Commit())
	wantContent(t, filepath.Join(s.Path(run), "a.txt"), "first")
	wantContent(t, filepath.Join(s.Path(run), "a-4.txt"), "second")
	wantNames(t, s.Path(run), "a-2.txt", "a-3.txt", "a-4.txt", "a.txt")
	out.wantUntouched(t)
}

func TestAbort(t *testing.T) {
	t.Run("leaves nothing", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		d := mustDeliver(t, s, run)
		mustAdd(t, d, "a", "a")
		must(t, d.Abort())
		must(t, d.Abort())
		wantNames(t, s.path)
		if _, err := d.Add("b", strings.NewReader("b")); err == nil {
			t.Fatal("a file was added after Abort")
		}
		if err := d.Commit(); err == nil {
			t.Fatal("the delivery was committed after Abort")
		}
		must(t, mustDeliver(t, s, run).Commit())
		wantNames(t, s.path, run.String())
	})
	t.Run("removes a folder whose rename was not synced", func(t *testing.T) {
		s := mustOpen(t)
		d := mustDeliver(t, s, mustID(t))
		mustAdd(t, d, "a", "a")
		must(t, d.commit())
		must(t, d.Abort())
		wantNames(t, s.path)
	})
	t.Run("does nothing after Commit", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		d := mustDeliver(t, s, run)
		must(t, d.Commit())
		must(t, d.Abort())
		if err := d.Commit(); err == nil {
			t.Fatal("committed twice")
		}
		must(t, d.Abort())
		wantNames(t, s.path, run.String())
	})
}

type decodeError struct{ at int }

func (e *decodeError) Error() string { return fmt.Sprintf("bad byte at %d", e.at) }

func TestContentError(t *testing.T) {
	cause := &decodeError{at: 7}
	for name, content := range map[string]io.Reader{
		"at once":         iotest.ErrReader(cause),
		"after bytes":     io.MultiReader(strings.NewReader("some bytes"), iotest.ErrReader(cause)),
		"with last bytes": iotest.DataErrReader(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(cause))),
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t)
			d := mustDeliver(t, s, mustID(t))
			mustAdd(t, d, "good", "good")
			_, err := d.Add("bad", content)
			var got *decodeError
			if !errors.As(err, &got) || got != cause || !errors.Is(err, cause) {
				t.Fatalf("error %v, want %v in its chain", err, cause)
			}
			_, again := d.Add("good too", strings.NewReader("x"))
			wantErr(t, "next Add", again, cause)
			wantErr(t, "Commit", d.Commit(), cause)
			must(t, d.Abort())
			wantNames(t, s.path)
		})
	}
	t.Run("a full disk of the content is not ours", func(t *testing.T) {
		d := mustDeliver(t, mustOpen(t), mustID(t))
		_, err := d.Add("a", iotest.ErrReader(syscall.ENOSPC))
		wantErr(t, "Add", err, syscall.ENOSPC)
		if errors.Is(err, ErrNoSpace) {
			t.Fatalf("%v is ErrNoSpace", err)
		}
		must(t, d.Abort())
	})
}

func TestDeliverRefused(t *testing.T) {
	t.Run("delivery under way", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		d := mustDeliver(t, s, run)
		mustAdd(t, d, "a", "a")
		_, err := s.Deliver(run)
		wantErr(t, "Deliver", err, ErrExist)
		must(t, d.Commit())
		wantContent(t, filepath.Join(s.Path(run), "a"), "a")
	})
	t.Run("folder there", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		must(t, s.Ensure(run))
		_, err := s.Deliver(run)
		wantErr(t, "Deliver", err, ErrExist)
		wantNames(t, s.path, run.String())
	})
	t.Run("folder made in the meantime", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		d := mustDeliver(t, s, run)
		mustAdd(t, d, "a", "a")
		must(t, s.Ensure(run))
		wantErr(t, "Commit", d.Commit(), ErrExist)
		wantErr(t, "Commit again", d.Commit(), ErrExist)
		must(t, d.Abort())
		wantNames(t, s.path, run.String())
		wantNames(t, s.Path(run))
	})
}

func TestDeliverFollowsNoLink(t *testing.T) {
	for _, target := range []string{"outside", "inside", "nowhere"} {
		t.Run(target, func(t *testing.T) {
			s := mustOpen(t)
			out := makeOutside(t)
			other := mustID(t)
			must(t, s.Ensure(other))
			to := map[string]string{"outside": out.dir, "inside": other.String(), "nowhere": "absent"}[target]

			run := mustID(t)
			must(t, os.Symlink(to, s.Path(run)+".new"))
			_, err := s.Deliver(run)
			wantErr(t, "Deliver on a link at ID.new", err, ErrExist)

			run = mustID(t)
			must(t, os.Symlink(to, s.Path(run)))
			_, err = s.Deliver(run)
			wantErr(t, "Deliver on a link at ID", err, ErrExist)

			run = mustID(t)
			d := mustDeliver(t, s, run)
			mustAdd(t, d, "a", "a")
			must(t, os.Symlink(to, s.Path(run)))
			if err := d.Commit(); err == nil {
				t.Fatal("committed over a link")
			}
			must(t, d.Abort())
			wantMode(t, s.Path(run), fs.ModeSymlink|0o777)
			wantNames(t, s.Path(other))
			out.wantUntouched(t)
		})
	}
}

func TestDeliveriesAtOnce(t *testing.T) {
	const runs, rivals = 24, 3
	s := mustOpen(t)
	var wg sync.WaitGroup
	for range runs {
		run := mustID(t)
		won := make(chan string, rivals)
		for i := range rivals {
			wg.Go(func() {
				d, err := s.Deliver(run)
				if errors.Is(err, ErrExist) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				defer d.Abort()
				text := fmt.Sprint(run, i)
				if _, err := d.Add("a", strings.NewReader(text)); err != nil {
					t.Error(err)
				}
				if err := d.Commit(); err != nil {
					t.Error(err)
				}
				won <- text
			})
		}
		defer func() {
			if len(won) != 1 {
				t.Errorf("run %s: %d deliveries committed", run, len(won))
				return
			}
			wantContent(t, filepath.Join(s.Path(run), "a"), <-won)
		}()
	}
	wg.Wait()
	entries, err := os.ReadDir(s.path)
	must(t, err)
	if len(entries) != runs {
		t.Fatalf("%d folders, want %d", len(entries), runs)
	}
}
