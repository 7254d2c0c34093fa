package secret

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-faster/errors"
)

// Variable begins the names of the server's environment variables that hold
// secrets: the one of NAME is AGENTRUN_SECRET_NAME.
const Variable = "AGENTRUN_SECRET_"

// Bounds of secrets, in bytes.
const (
	// MaxValue is for the value of one secret.
	MaxValue = 64 << 10
	// MaxTotal is for the values of a Set together: what is needed to look for
	// them takes several hundred times their size.
	MaxTotal = 4 * MaxValue
)

// Source is where secrets come from; the zero Source has none. It may be used by
// many at once.
type Source struct {
	dir string // empty when there is none
	// variable looks into the server's environment as it was at the start. It
	// is a function since printing one shows nothing of what it knows.
	variable func(name string) (value string, found bool)
}

// Open returns a Source of a directory, in which the file NAME holds the value
// of the secret NAME, and of the variables AGENTRUN_SECRET_NAME of an
// environment as of os.Environ. The directory may be empty text for none.
// Errors: ErrUnusable, also where the directory is no such thing, belongs to
// someone else or is open to others than its owner.
func Open(dir string, environ []string) (*Source, error) {
	vars := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		name, ours := strings.CutPrefix(name, Variable)
		if _, again := vars[name]; ours && !again { // The first one counts, as for os.Getenv.
			vars[name] = value
		}
	}
	s := &Source{dir: dir, variable: func(name string) (string, bool) {
		value, found := vars[name]
		return value, found
	}}
	if dir == "" {
		return s, nil
	}
	root, err := s.openDir()
	if err != nil {
		return nil, err
	}
	return s, root.Close()
}

// Lookup reads the secrets of these names as they are now: one that was
// replaced since counts. A file comes before a variable; one newline at the end
// of a value is taken off. Errors: ErrMissing, ErrUnusable or both, about all of
// the names.
func (s *Source) Lookup(names []string) (Set, error) {
	if len(names) == 0 {
		return Set{}, nil
	}
	var root *os.Root
	if s.dir != "" {
		var err error
		if root, err = s.openDir(); err != nil {
			return Set{}, err
		}
		defer func() { _ = root.Close() }() // nothing was written
	}
	var known, values, missing []string
	var bad error
	total := 0
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		value, err := s.read(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			bad = also(bad, err)
		default:
			known, values = append(known, name), append(values, value)
			total += len(value)
		}
	}
	if total > MaxTotal {
		bad = also(bad, unusable(strings.Join(known, ", "), fmt.Sprintf("together longer than %d bytes", MaxTotal)))
	}
	if len(missing) > 0 {
		bad = also(s.missing(missing), bad)
	}
	if bad != nil {
		return Set{}, bad
	}
	return newSet(known, values), nil
}

// also joins two errors, of which either may be nil, in one line.
func also(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Errorf("%w; %w", a, b)
}

// missing is ErrMissing of these names.
func (s *Source) missing(names []string) error {
	where := "neither in " + s.dir + " nor"
	if s.dir == "" {
		where = "not"
	}
	where += " in the server's environment as " + Variable + strings.Join(names, ", "+Variable)
	return errors.Errorf("%w: %s: %s", ErrMissing, strings.Join(names, ", "), where)
}

// read returns the value of a secret, or fs.ErrNotExist.
func (s *Source) read(root *os.Root, name string) (string, error) {
	if !isName(name) {
		return "", unusable(fmt.Sprintf("%q", name), "not the name of an environment variable")
	}
	if root != nil {
		value, err := readFile(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", unusable(filepath.Join(s.dir, name), reason(err))
		default:
			return value, nil
		}
	}
	if s.variable == nil {
		return "", fs.ErrNotExist
	}
	value, found := s.variable(name)
	if !found {
		return "", fs.ErrNotExist
	}
	value, err := check(value)
	if err != nil {
		return "", unusable(Variable+name, err.Error())
	}
	return value, nil
}

// isName tells environment variables from paths.
func isName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// check returns a value without its last newline if it can be a secret.
func check(value string) (string, error) {
	if line, cut := strings.CutSuffix(value, "\n"); cut {
		value = strings.TrimSuffix(line, "\r")
	}
	switch {
	case strings.TrimSpace(value) == "":
		return "", errors.New("empty")
	case len(value) < minForm:
		return "", errors.Errorf("shorter than %d bytes: it could not be masked", minForm)
	case len(value) > MaxValue:
		return "", errors.Errorf("longer than %d bytes", MaxValue)
	case strings.Contains(value, "\x00"):
		return "", errors.New("holds a NUL byte")
	}
	return value, nil
}

// openDir opens the directory as it is now, so that it can be replaced as a
// whole, and all secrets of a Lookup are of the same one.
func (s *Source) openDir() (*os.Root, error) {
	// With the slash a pipe is not opened, which would wait for a writer.
	root, err := os.OpenRoot(s.dir + "/")
	if err != nil {
		return nil, unusable(s.dir, reason(err))
	}
	info, err := root.Stat(".")
	if err == nil {
		err = private(info, 0o700)
	}
	if err != nil {
		_ = root.Close() // nothing was written
		return nil, unusable(s.dir, reason(err))
	}
	return root, nil
}

func readFile(root *os.Root, name string) (string, error) {
	// A link within the directory would be followed by Open.
	info, err := root.Lstat(name)
	if err != nil {
		return "", err
	}
	if err := regular(info); err != nil {
		return "", err
	}
	// Without waiting, should it have become a pipe since.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // nothing was written
	if info, err = file.Stat(); err != nil {
		return "", err
	}
	if err := regular(info); err != nil {
		return "", err
	}
	if err := private(info, 0o600); err != nil {
		return "", err
	}
	// A byte more than a value and its newline have tells that it is too long.
	value, err := io.ReadAll(io.LimitReader(file, MaxValue+3))
	if err != nil {
		return "", err
	}
	return check(string(value))
}

func regular(info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("a symbolic link, want a regular file")
	}
	return errors.New("not a regular file")
}

// private returns an error when others than the server's user and root can
// read or change what the info is about.
func private(info fs.FileInfo, want fs.FileMode) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return errors.Errorf("mode %04o lets others in, want %04o or stricter", mode, want)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner is unknown")
	}
	return owned(int(stat.Uid), os.Geteuid())
}

func owned(owner, server int) error {
	if owner != 0 && owner != server {
		return errors.Errorf("belongs to user %d, want %d or root", owner, server)
	}
	return nil
}

// reason is what the operating system says of a file, without the path, which
// the caller tells in full.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}
