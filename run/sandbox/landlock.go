package sandbox

import (
	"github.com/go-faster/errors"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// landlockABIs are the versions of Landlock that are used, the newest first.
// Each is enforced whole: a best effort may be none.
var landlockABIs = []struct {
	abi    int
	config landlock.Config
}{{7, landlock.V7}, {6, landlock.V6}, {5, landlock.V5}, {4, landlock.V4}, {3, landlock.V3}}

// minFallbackABI is the least that the level landlock needs: with it a command
// cannot signal what is outside, such as the process that watches it.
const minFallbackABI = 6

// landlockABI returns the version of Landlock that the kernel has, 0 for none.
func landlockABI() int {
	const createRulesetVersion = 1 << 0
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createRulesetVersion)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// confineFiles leaves this process and what it starts the paths of the rules,
// those of them that exist, and nothing else. Signals and abstract sockets
// reach nobody outside either, where the kernel can do that.
func confineFiles(rules ...landlock.Rule) error {
	abi := landlockABI()
	for _, l := range landlockABIs {
		if l.abi > abi {
			continue
		}
		// The network is not Landlock's: it knows ports, but no hosts.
		config, err := landlock.NewConfig(l.config.HandledAccessFS, l.config.Scoped)
		if err == nil {
			err = config.Restrict(rules...)
		}
		if err != nil {
			return errors.Wrap(err, "landlock")
		}
		return nil
	}
	return errors.Errorf("landlock: the kernel has version %d, 3 is needed", abi)
}
