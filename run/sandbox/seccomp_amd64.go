package sandbox

import "golang.org/x/sys/unix"

// auditArch is the architecture as a filter sees it.
const auditArch = unix.AUDIT_ARCH_X86_64

// ownCalls are the denied system calls that only this architecture has.
var ownCalls = map[string]uint32{
	"modify_ldt": unix.SYS_MODIFY_LDT, "iopl": unix.SYS_IOPL, "ioperm": unix.SYS_IOPERM, "uselib": unix.SYS_USELIB,
	"_sysctl": unix.SYS__SYSCTL, "create_module": unix.SYS_CREATE_MODULE, "get_kernel_syms": unix.SYS_GET_KERNEL_SYMS,
	"query_module": unix.SYS_QUERY_MODULE, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
}
