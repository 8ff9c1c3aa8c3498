package proc_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// netAttempts try to speak to others.
func netAttempts() []attempt {
	dial := func(network, addr string) error {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), network, addr)
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("out"))
		return errors.Join(err, conn.Close())
	}
	return []attempt{
		{"connect by TCP", "ok", "EACCES", func(s *scene) error { return dial("tcp", s.TCP) }},
		{"listen on a TCP port", "ok", "EACCES", func(*scene) error {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			return l.Close()
		}},
		{"connect by a protocol that is nearly TCP", "ok", "EACCES", func(s *scene) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
			if err != nil {
				return err
			}
			addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s.TCP))
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte{127, 0, 0, 1}})
			return errors.Join(err, unix.Close(fd))
		}},
		{"connect by TCP with the first data", "ok", "EACCES", func(s *scene) error {
			return onTCP(s, unix.AF_INET, func(fd int, to unix.Sockaddr) error { return unix.Sendto(fd, []byte("out"), unix.MSG_FASTOPEN, to) })
		}},
		{"connect by TCP with the first message", "ok", "EACCES", func(s *scene) error {
			return onTCP(s, unix.AF_INET6, func(fd int, to unix.Sockaddr) error {
				return unix.Sendmsg(fd, []byte("out"), nil, to, unix.MSG_FASTOPEN)
			})
		}},
		{"connect by TCP after an option", "ok", "EACCES", func(s *scene) error {
			return onTCP(s, unix.AF_INET, func(fd int, to unix.Sockaddr) error {
				if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
					return err
				}
				return unix.Connect(fd, to)
			})
		}},
		{"connect by TCP from a socket of the other version", "ok", "EACCES", func(s *scene) error { return onTCP(s, unix.AF_INET6, unix.Connect) }},
		{"listen on a TCP port without binding", "ok", "EACCES", func(s *scene) error {
			return onTCP(s, unix.AF_INET, func(fd int, _ unix.Sockaddr) error { return unix.Listen(fd, 1) })
		}},
		{"send a datagram", "ok", "EACCES", func(s *scene) error { return dial("udp", s.UDP) }},
		{"speak to the kernel's network", "ok", "EACCES", func(*scene) error {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
			_ = unix.Close(fd)
			return err
		}},
		{"connect to a unix socket by its path", "ok", "EACCES", func(s *scene) error { return dial("unix", s.Unix) }},
		{"send a datagram to a unix socket by its path", "ok", "EACCES", func(s *scene) error { return dial("unixgram", s.Datagrams) }},
		{"send one by a pair of its own", "ok", "EACCES", func(s *scene) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			err = unix.Sendto(pair[0], []byte("out"), 0, &unix.SockaddrUnix{Name: s.Datagrams})
			return errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
		}},
		{"connect to an abstract unix socket", "ok", "EACCES", func(s *scene) error { return dial("unix", s.Abstract) }},
		{"connect to a unix socket of its own", "ok", "EACCES", func(*scene) error {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", own("socket"))
			if err != nil {
				return err
			}
			return errors.Join(dial("unix", own("socket")), l.Close())
		}},
		{"make a ring that makes sockets", asRoot, "EPERM", func(*scene) error {
			var params [120]byte
			fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		}},
	}
}

// onTCP makes a socket of a family and does something with it and the address on
// which the test listens, as that family writes it.
func onTCP(s *scene, family int, do func(fd int, to unix.Sockaddr) error) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	addr := netip.MustParseAddrPort(s.TCP)
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	if family == unix.AF_INET6 {
		to = &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	return errors.Join(do(fd, to), unix.Close(fd))
}
