package sandbox

import "golang.org/x/sys/unix"

// auditArch is the architecture as a filter sees it.
const auditArch = unix.AUDIT_ARCH_AARCH64

// ownCalls are the denied system calls that not every architecture has.
var ownCalls = map[string]uint32{"lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE}
