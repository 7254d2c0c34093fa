package agentfile_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

func TestReadPaths(t *testing.T) {
	paths := []string{
		"/opt", "/opt/tools", "/srv/a b", "/srv/...", "/srv/.hidden", "/srv/bücher", "/devel", "/process", "/system/x", "/opt/proc",
	}
	quoted := make([]string, len(paths))
	for i, path := range paths {
		quoted[i] = strconv.Quote(path)
	}
	file, err := agentfile.Parse("name: x\nmodel: a/b\nread: [" + strings.Join(quoted, ", ") + "]\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(paths, file.Definition.Read); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFaultsOfReadPaths(t *testing.T) {
	const command = "name: x\ncommand: [a]\nread:\n- /ok\n"
	var cases []faultCase
	add := func(path, want string) {
		cases = append(cases, faultCase{path, command + "- " + strconv.Quote(path) + "\n", []string{
			"line 5: read[1]: " + want + ", have " + strconv.Quote(path),
		}})
	}
	for _, path := range []string{"", "opt", "./opt", "../opt", "~/opt", "C:/opt", " /opt"} {
		add(path, "want an absolute path such as /opt/tools")
	}
	for _, path := range []string{"/a\x00b", "/a\nb", "/a\x1bb", "/a\x7f", "/a\u0085b"} {
		add(path, "want a path without control characters")
	}
	for _, path := range []string{"/", "//", "/.", "/..", "/opt/.."} {
		add(path, "want the folders that are needed, not all of them")
	}
	for _, path := range []string{"/proc", "/proc/1/root", "/sys", "/sys/fs", "/dev", "/dev/shm", "//proc", "/opt/../dev/sda", "/sys/", "/run", "/var/run/docker.sock"} {
		add(path, "the machine's /proc, /sys, /dev, /run, /var/run stay hidden")
	}
	for path, clean := range map[string]string{
		"/opt/": "/opt", "//opt": "/opt", "/opt//a": "/opt/a", "/opt/./a": "/opt/a", "/opt/../srv": "/srv", "/../opt": "/opt", "/opt/.": "/opt",
	} {
		add(path, `want it written as "`+clean+`"`)
	}
	cases = append(cases,
		faultCase{"twice", command + "- /a\n- /ok\n", []string{"line 6: read[2]: /ok is given twice, first in line 4"}},
		faultCase{"twice, with a line's end of Unicode", command + "- \"/a\\u2028\"\n- \"/a\\u2028\"\n", []string{
			`line 6: read[2]: "/a\u2028" is given twice, first in line 5`,
		}},
		faultCase{"a text", "name: x\nmodel: a/b\nread: /opt\n", []string{
			`line 3: read: want a list such as [/opt/tools], have "/opt"`,
		}},
	)
	testFaults(t, cases)
}
