package sandbox

import (
	"errors"
	"net"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// networkAttacks talk to the host's listeners.
func networkAttacks() []attack {
	dial := func(name string, family, kind, protocol int, to func(s *scene) unix.Sockaddr) attack {
		return attack{name: "connect by " + name, do: func(s *scene) error {
			fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if to == nil {
				return nil
			}
			address := to(s)
			if address == nil {
				return errNothing
			}
			return unix.Connect(fd, address)
		}}
	}
	path := func(of func(s *scene) string) func(s *scene) unix.Sockaddr {
		return func(s *scene) unix.Sockaddr { return &unix.SockaddrUnix{Name: of(s)} }
	}
	stream, datagram := path(func(s *scene) string { return s.Stream }), path(func(s *scene) string { return s.Datagram })
	abstract, abstractDatagram := path(func(s *scene) string { return "@" + s.Abstract }), path(func(s *scene) string { return "@" + s.Abstract + "-datagram" })
	tcp := func(s *scene) unix.Sockaddr { return internet(s.TCP) }
	all := []attack{
		dial("TCP", unix.AF_INET, unix.SOCK_STREAM, 0, tcp),
		dial("TCP over IPv6", unix.AF_INET6, unix.SOCK_STREAM, 0, func(s *scene) unix.Sockaddr { return internet(s.TCP6) }),
		dial("MPTCP", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, tcp),
		dial("a unix socket", unix.AF_UNIX, unix.SOCK_STREAM, 0, stream),
		dial("a unix datagram socket", unix.AF_UNIX, unix.SOCK_DGRAM, 0, datagram),
		dial("an abstract unix socket", unix.AF_UNIX, unix.SOCK_STREAM, 0, abstract),
		dial("an abstract unix datagram socket", unix.AF_UNIX, unix.SOCK_DGRAM, 0, abstractDatagram),
		dial("a raw ICMP socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, nil),
		dial("a raw socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, nil),
		dial("a raw IPv6 socket", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, nil),
		dial("an old packet socket", unix.AF_INET, unix.SOCK_PACKET, 0x0300, nil),
		{name: "send by UDP", do: func(s *scene) error { return s.sendPacket("udp4", s.UDP) }},
	}
	for kindName, kind := range map[string]int{"datagram": unix.SOCK_DGRAM, "raw": unix.SOCK_RAW, "stream": unix.SOCK_STREAM, "packet": unix.SOCK_SEQPACKET} {
		for toName, to := range map[string]func(*scene) unix.Sockaddr{"a path": datagram, "an abstract name": abstractDatagram, "a listener": stream} {
			all = append(all, attack{name: "turn a pair of " + kindName + " sockets to " + toName, do: func(s *scene) error { return turn(kind, to(s)) }})
		}
	}
	return append(all, interfaceAttacks()...)
}

// turn gives a socket that was made as one of a pair another partner.
func turn(kind int, to unix.Sockaddr) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(0), to, 0); err == nil {
		// Some kinds do not look at the address.
		if _, _, err := unix.Recvfrom(pair[1], make([]byte, 1), unix.MSG_DONTWAIT); err != nil {
			return nil
		}
	}
	return unix.Connect(pair[0], to)
}

func internet(text string) unix.Sockaddr {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil
	}
	number, _ := strconv.Atoi(port)
	if ip := net.ParseIP(host).To4(); ip != nil {
		return &unix.SockaddrInet4{Port: number, Addr: [4]byte(ip)}
	}
	return &unix.SockaddrInet6{Port: number, Addr: [16]byte(net.ParseIP(host))}
}

// sendPacket sends the token. Whether it arrives anywhere the sender cannot
// know: the host looks.
func (s *scene) sendPacket(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(s.Token))
	return errors.Join(err, errNothing)
}

// judgePackets looks whether a packet arrived. On loopback one is there once it
// was sent.
func (s *scene) judgePackets(results map[string]attackResult) {
	text := make([]byte, 256)
	_ = s.packets.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	n, err := s.packets.Read(text)
	const name = "send by UDP"
	if r, ok := results[name]; ok && err == nil && string(text[:n]) == s.Token {
		r.Got = true
		results[name] = r
	}
}

// interfaceAttacks look at the host's network through any socket, and change
// it.
func interfaceAttacks() []attack {
	ioctl := func(request uintptr, ifr *unix.Ifreq) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
		return errnoError(call(unix.SYS_IOCTL, uintptr(pair[0]), request, uintptr(unsafe.Pointer(ifr))))
	}
	return []attack{
		{name: "names of the host's network interfaces", do: func(s *scene) error {
			last := errNothing
			for index := range uint32(16) {
				ifr, _ := unix.NewIfreq("")
				ifr.SetUint32(index)
				if last = ioctl(unix.SIOCGIFNAME, ifr); last == nil && (ifr.Name() != "lo" || s.Level == Landlock) {
					return nil
				}
			}
			return errors.Join(last, errNothing)
		}},
		{name: "addresses of the host's network interfaces", do: func(s *scene) error {
			var buffer [4096]byte
			request := struct {
				length int32
				_      int32
				buffer *byte
			}{length: int32(len(buffer)), buffer: &buffer[0]}
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			if errno := call(unix.SYS_IOCTL, uintptr(pair[0]), unix.SIOCGIFCONF, uintptr(unsafe.Pointer(&request))); errno != 0 {
				return errno
			}
			const perInterface = 40
			if s.Level != Landlock && request.length <= perInterface {
				return errNothing // that is one's own loopback
			}
			return nil
		}},
		{name: "change a network interface", do: func(*scene) error {
			ifr, _ := unix.NewIfreq("lo")
			if err := ioctl(unix.SIOCGIFFLAGS, ifr); err != nil {
				return err
			}
			return ioctl(unix.SIOCSIFFLAGS, ifr)
		}},
		{name: "change the host's name", do: func(*scene) error {
			name, err := os.Hostname()
			if err != nil {
				return err
			}
			return unix.Sethostname([]byte(name))
		}},
		{name: "change the host's domain", do: func(*scene) error {
			var u unix.Utsname
			if err := unix.Uname(&u); err != nil {
				return err
			}
			return unix.Setdomainname([]byte(unix.ByteSliceToString(u.Domainname[:])))
		}},
	}
}
