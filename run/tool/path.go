package tool

import (
	"path"
	"strings"
)

// relative is a path of the workspace as storage/workspace takes it, when it is
// one: models write ./a and a/, and know the workspace's absolute path from
// programs. What is no such path stays as it is, and is refused there.
func (p *Place) relative(given string) string {
	name, below := strings.CutPrefix(given, p.Workspaces.Path(p.Run))
	if !below || name != "" && name[0] != '/' {
		name = given
	} else {
		name = "." + name
	}
	if name == "" || path.IsAbs(name) || hasParent(name) {
		return given
	}
	return path.Clean(name)
}

// hasParent says whether one of the names is "..". What that leads to is not the
// same with symbolic links and without.
func hasParent(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// own says whether a path below a folder leads through what git or the server
// keeps for itself, which is noise to whoever did not ask for it.
func own(below string) bool {
	for part := range strings.SplitSeq(below, "/") {
		if part == ".git" || part == logFolder || strings.HasPrefix(part, logFolder+"-") {
			return true
		}
	}
	return false
}
