package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errOtherMachine says that an attack is one on another architecture.
var errOtherMachine = errors.New("not on this architecture")

// Other ways into the same kernel have other numbers for its calls. The filter
// kills what tries one, so each is tried by a process of its own.
func abiAttacks() []attack {
	const getpid32, getpid64 = 20, 39
	return []attack{
		apart("int 0x80", func() error {
			// push rbx; push rbp; mov eax, getpid; int 0x80; pop rbp; pop rbx; ret
			pid, err := runCode([]byte{0x53, 0x55, 0xb8, getpid32, 0, 0, 0, 0xcd, 0x80, 0x5d, 0x5b, 0xc3})
			if err == nil && int(pid) != os.Getpid() {
				err = fmt.Errorf("the answer is %d", int(pid))
			}
			return err
		}),
		apart("a call of the x32 ABI", func() error { return looked(call(x32Bit | getpid64)) }),
		apart("a negative call", func() error { return looked(call(^uintptr(0) - 1)) }),
		{name: "a 32-bit program", do: func(*scene) error {
			if runtime.GOARCH != "amd64" {
				return errOtherMachine
			}
			if err := os.WriteFile("elf32", program32(), 0o700); err != nil {
				return err
			}
			out, err := exec.Command("./elf32").Output()
			if string(out) == "got" {
				return nil
			}
			return errors.Join(err, errNoAnswer)
		}},
	}
}

// apart makes an attack that ends its process when it is refused.
func apart(name string, do func() error) attack {
	return attack{name: name, do: func(s *scene) error {
		switch {
		case runtime.GOARCH != "amd64":
			return errOtherMachine
		case !slices.Contains(s.Only, name):
			return s.again(name, "./attacker")
		}
		return do()
	}}
}

// runCode runs machine code that keeps the registers which Go's own needs.
func runCode(code []byte) (uintptr, error) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0, err
	}
	copy(page, code)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return 0, err
	}
	// A Go function value points to where the address of its code is.
	entry := &page[0]
	closure := unsafe.Pointer(&entry)
	return (*(*func() uintptr)(unsafe.Pointer(&closure)))(), nil
}

// program32 is a 32-bit program that writes "got".
func program32() []byte {
	const base, header = 0x10000, 52 + 32
	code := []byte{
		0xb8, 4, 0, 0, 0, // mov eax, write
		0xbb, 1, 0, 0, 0, // mov ebx, standard output
		0xb9, 0, 0, 0, 0, // mov ecx, the text
		0xba, 3, 0, 0, 0, // mov edx, its length
		0xcd, 0x80,
		0xb8, 1, 0, 0, 0, // mov eax, exit
		0x31, 0xdb, // xor ebx, ebx
		0xcd, 0x80,
		'g', 'o', 't',
	}
	size := uint32(header + len(code))
	binary.LittleEndian.PutUint32(code[11:], base+size-3)
	var b bytes.Buffer
	b.WriteString("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, field := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + header), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		// The one segment: load all of the file, to be read and executed.
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000),
	} {
		_ = binary.Write(&b, binary.LittleEndian, field)
	}
	b.Write(code)
	return b.Bytes()
}
