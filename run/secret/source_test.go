package secret

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-faster/errors"
)

// privateDir is a directory as Open wants it.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secrets")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, dir string, environ ...string) *Source {
	t.Helper()
	source, err := Open(dir, environ)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// checkLookup checks what a lookup of some names gives, as an environment.
func checkLookup(t *testing.T, source *Source, names []string, want ...string) {
	t.Helper()
	set, err := source.Lookup(names)
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Environ(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLookup(t *testing.T) {
	dir := privateDir(t)
	put(t, dir+"/FILE", "from-file", 0o600)
	put(t, dir+"/BOTH", "from-file\n", 0o400)
	source := mustOpen(t, dir, "HOME=/", "AGENTRUN_SECRET_BOTH=from-env", "AGENTRUN_SECRET_ENV=from=env",
		"AGENTRUN_SECRET_ENV=the second one", "AGENTRUN_SECRET_LINE=line\n", "HOME=", "AGENTRUN_SECRET_", "AGENTRUN_SECRETS=x")
	checkLookup(t, source, nil)
	checkLookup(t, source, []string{"FILE"}, "FILE=from-file")
	checkLookup(t, source, []string{"LINE", "ENV", "BOTH", "FILE", "ENV"},
		"LINE=line", "ENV=from=env", "BOTH=from-file", "FILE=from-file")
}

func TestLookupWithoutDirectory(t *testing.T) {
	environ := []string{"AGENTRUN_SECRET_ENV=from-env"}
	source := mustOpen(t, "", environ...)
	environ[0] = "AGENTRUN_SECRET_ENV=changed"
	checkLookup(t, source, []string{"ENV"}, "ENV=from-env")
}

// A secret, or all of them, can be replaced while the server runs.
func TestLookupReadsAnew(t *testing.T) {
	dir := privateDir(t)
	source := mustOpen(t, dir, "AGENTRUN_SECRET_A=from-env")
	checkLookup(t, source, []string{"A"}, "A=from-env")
	put(t, dir+"/A", "first", 0o600)
	checkLookup(t, source, []string{"A"}, "A=first")
	put(t, dir+"/new", "second", 0o600)
	if err := os.Rename(dir+"/new", dir+"/A"); err != nil {
		t.Fatal(err)
	}
	checkLookup(t, source, []string{"A"}, "A=second")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Lookup([]string{"A"}); !errors.Is(err, ErrUnusable) {
		t.Errorf("got %v without the directory", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/A", "third", 0o600)
	checkLookup(t, source, []string{"A"}, "A=third")
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Lookup([]string{"A"}); !errors.Is(err, ErrUnusable) {
		t.Errorf("got %v of a directory that was opened to others", err)
	}
}

func TestValues(t *testing.T) {
	longest := strings.Repeat("x", MaxValue)
	for _, row := range []struct{ name, content, want, problem string }{
		{name: "bare", content: "value", want: "value"},
		{name: "a newline", content: "value\n", want: "value"},
		{name: "a newline of Windows", content: "value\r\n", want: "value"},
		{name: "two newlines", content: "value\n\n", want: "value\n"},
		{name: "a carriage return", content: "value\r", want: "value\r"},
		{name: "lines", content: "a\nb c\n\td\n", want: "a\nb c\n\td"},
		{name: "blanks", content: " value ", want: " value "},
		{name: "not UTF-8", content: "\xff\xfe\xfd\xfc", want: "\xff\xfe\xfd\xfc"},
		{name: "four bytes", content: "1234\n", want: "1234"},
		{name: "the longest", content: longest, want: longest},
		{name: "the longest with a newline", content: longest + "\n", want: longest},
		{name: "the longest with a newline of Windows", content: longest + "\r\n", want: longest},
		{name: "too long", content: longest + "x", problem: "longer than 65536 bytes"},
		{name: "too long with a newline", content: longest + "x\n", problem: "longer than 65536 bytes"},
		{name: "far too long", content: longest + "\r\n" + longest, problem: "longer than 65536 bytes"},
		{name: "three bytes", content: "123\n", problem: "shorter than 4 bytes: it could not be masked"},
		{name: "empty", content: "", problem: "empty"},
		{name: "a newline alone", content: "\n", problem: "empty"},
		{name: "only blanks", content: "  \t \n \n", problem: "empty"},
		{name: "a NUL", content: "val\x00ue", problem: "holds a NUL byte"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := privateDir(t)
			path := filepath.Join(dir, "A")
			put(t, path, row.content, 0o600)
			for where, source := range map[string]*Source{
				path:                mustOpen(t, dir),
				"AGENTRUN_SECRET_A": mustOpen(t, "", "AGENTRUN_SECRET_A="+row.content),
			} {
				set, err := source.Lookup([]string{"A"})
				if row.problem != "" {
					if want := "secrets unusable: " + where + ": " + row.problem; !errors.Is(err, ErrUnusable) || err.Error() != want {
						t.Errorf("got %v, want %s", err, want)
					}
					continue
				}
				if err != nil {
					t.Error(err)
				} else if got := set.Environ()[0]; got != "A="+row.want {
					t.Errorf("%s: got %.100q, want %.100q", where, got, row.want)
				}
			}
		})
	}
}

func TestFiles(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(t *testing.T, path string) error
		want string
	}{
		{"for the group", func(t *testing.T, path string) error { put(t, path, "value", 0o640); return nil },
			"mode 0640 lets others in, want 0600 or stricter"},
		{"for all", func(t *testing.T, path string) error { put(t, path, "value", 0o644); return nil },
			"mode 0644 lets others in, want 0600 or stricter"},
		{"for others to write", func(t *testing.T, path string) error { put(t, path, "value", 0o602); return nil },
			"mode 0602 lets others in, want 0600 or stricter"},
		{"a link out", func(t *testing.T, path string) error {
			put(t, filepath.Join(path, "../../A"), "value", 0o600)
			return os.Symlink("../A", path)
		}, "a symbolic link, want a regular file"},
		{"a link within", func(t *testing.T, path string) error {
			put(t, path+"2", "value", 0o600)
			return os.Symlink("A2", path)
		}, "a symbolic link, want a regular file"},
		{"a link to nothing", func(_ *testing.T, path string) error { return os.Symlink("B", path) },
			"a symbolic link, want a regular file"},
		{"a directory", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) },
			"not a regular file"},
		{"a pipe", func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) },
			"not a regular file"},
		{"another user's", func(t *testing.T, path string) error {
			put(t, path, "value", 0o600)
			return chown(t, path)
		}, fmt.Sprintf("belongs to user 12345, want %d or root", os.Geteuid())},
		{"not to be read", func(t *testing.T, path string) error {
			put(t, path, "value", 0)
			if os.Geteuid() == 0 {
				t.Skip("root reads every file")
			}
			return nil
		}, "permission denied"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := privateDir(t)
			path := filepath.Join(dir, "A")
			if err := row.make(t, path); err != nil {
				t.Fatal(err)
			}
			// A variable does not help where a file is wrong.
			_, err := mustOpen(t, dir, "AGENTRUN_SECRET_A=value").Lookup([]string{"A"})
			if want := "secrets unusable: " + path + ": " + row.want; !errors.Is(err, ErrUnusable) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func chown(t *testing.T, path string) error {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	return os.Chown(path, 12345, -1)
}

func TestDirectories(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(t *testing.T, path string) error
		want string // of the error; empty when there is none
	}{
		{"private", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, ""},
		{"not to be written", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o500) }, ""},
		{"a link", func(t *testing.T, path string) error { return os.Symlink(privateDir(t), path) }, ""},
		{"not there", func(*testing.T, string) error { return nil }, "no such file or directory"},
		{"a file", func(t *testing.T, path string) error { put(t, path, "", 0o700); return nil }, "not a directory"},
		{"a pipe", func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o700) }, "not a directory"},
		{"for others to read", mkdir(0o755), "mode 0755 lets others in, want 0700 or stricter"},
		{"for others to write", mkdir(0o722), "mode 0722 lets others in, want 0700 or stricter"},
		{"for others to enter", mkdir(0o701), "mode 0701 lets others in, want 0700 or stricter"},
		{"for the group", mkdir(0o750), "mode 0750 lets others in, want 0700 or stricter"},
		{"another user's", func(t *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), chown(t, path))
		}, fmt.Sprintf("belongs to user 12345, want %d or root", os.Geteuid())},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secrets")
			if err := row.make(t, path); err != nil {
				t.Fatal(err)
			}
			source, err := Open(path, nil)
			switch {
			case row.want == "":
				if err != nil {
					t.Fatal(err)
				}
				if _, err := source.Lookup([]string{"A"}); !errors.Is(err, ErrMissing) {
					t.Errorf("got %v of an empty directory", err)
				}
			case !errors.Is(err, ErrUnusable) || err.Error() != "secrets unusable: "+path+": "+row.want:
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}

// mkdir makes a directory of that mode, whatever the umask.
func mkdir(mode os.FileMode) func(t *testing.T, path string) error {
	return func(_ *testing.T, path string) error {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
}

func TestOwned(t *testing.T) {
	for _, row := range []struct {
		owner, server int
		ok            bool
	}{{0, 0, true}, {0, 7, true}, {7, 7, true}, {7, 0, false}, {8, 7, false}} {
		if err := owned(row.owner, row.server); (err == nil) != row.ok {
			t.Errorf("a file of %d for a server of %d: %v", row.owner, row.server, err)
		}
	}
}

func TestLookupNamesAllThatIsWrong(t *testing.T) {
	dir := privateDir(t)
	put(t, dir+"/FINE", "a fine value", 0o600)
	put(t, dir+"/OPEN", "an open value", 0o644)
	put(t, dir+"/SHORT", "ab", 0o600)
	environ := []string{"AGENTRUN_SECRET_ENV=environ value", "AGENTRUN_SECRET_EMPTY="}
	for _, row := range []struct {
		name, dir       string
		names           []string
		missing, broken bool
		want            string
	}{
		{"one", dir, []string{"ONE"}, true, false,
			"secrets missing: ONE: neither in " + dir + " nor in the server's environment as AGENTRUN_SECRET_ONE"},
		{"several among others", dir, []string{"B", "FINE", "A", "ENV", "B"}, true, false,
			"secrets missing: B, A: neither in " + dir + " nor in the server's environment as AGENTRUN_SECRET_B, AGENTRUN_SECRET_A"},
		{"without a directory", "", []string{"FINE", "ENV"}, true, false,
			"secrets missing: FINE: not in the server's environment as AGENTRUN_SECRET_FINE"},
		{"missing and more", dir, []string{"OPEN", "A", "SHORT", "EMPTY"}, true, true,
			"secrets missing: A: neither in " + dir + " nor in the server's environment as AGENTRUN_SECRET_A; " +
				"secrets unusable: " + dir + "/OPEN: mode 0644 lets others in, want 0600 or stricter; " +
				"secrets unusable: " + dir + "/SHORT: shorter than 4 bytes: it could not be masked; " +
				"secrets unusable: AGENTRUN_SECRET_EMPTY: empty"},
		{"no names of variables", dir, []string{"../A", "", "2", "a b", "Ä"}, false, true,
			`secrets unusable: "../A": not the name of an environment variable; ` +
				`secrets unusable: "": not the name of an environment variable; ` +
				`secrets unusable: "2": not the name of an environment variable; ` +
				`secrets unusable: "a b": not the name of an environment variable; ` +
				`secrets unusable: "Ä": not the name of an environment variable`},
	} {
		t.Run(row.name, func(t *testing.T) {
			set, err := mustOpen(t, row.dir, environ...).Lookup(row.names)
			if err == nil || err.Error() != row.want {
				t.Fatalf("got %v, want %s", err, row.want)
			}
			if errors.Is(err, ErrMissing) != row.missing || errors.Is(err, ErrUnusable) != row.broken {
				t.Errorf("%v is missing: %v, unusable: %v", err, errors.Is(err, ErrMissing), errors.Is(err, ErrUnusable))
			}
			for _, printed := range []string{fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
				if strings.Contains(printed, "value") {
					t.Errorf("the error holds a value: %s", printed)
				}
			}
			if set.held != nil {
				t.Errorf("there is a Set nevertheless: %v", set)
			}
		})
	}
}

func TestSecretsTogetherTooLong(t *testing.T) {
	dir := privateDir(t)
	names := []string{"A", "B", "C", "D", "E"}
	for _, name := range names {
		put(t, filepath.Join(dir, name), strings.Repeat("x", MaxTotal/len(names)+1), 0o600)
	}
	_, err := mustOpen(t, dir).Lookup(names)
	if want := "secrets unusable: A, B, C, D, E: together longer than 262144 bytes"; !errors.Is(err, ErrUnusable) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSourcePrintsNoValues(t *testing.T) {
	source := mustOpen(t, "", "AGENTRUN_SECRET_A=value-of-a")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		checkHidden(t, verb, fmt.Sprintf(verb, source))
		checkHidden(t, verb, fmt.Sprintf(verb, *source))
	}
}
