package proc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc/peer"
)

// checkListener checks before dialling that each listener of a TCP address is the plugin's; else checkPeer does.
func (p *Process) checkListener(h handshake) error {
	if h.network != "tcp" {
		return nil
	}
	addr, err := netip.ParseAddrPort(h.address)
	if err != nil {
		return err
	}
	sockets, err := tcpListeners(addr)
	if err != nil {
		return err
	}
	if len(sockets) == 0 {
		return unix.ECONNREFUSED
	}
	for _, inode := range sockets {
		if !p.child.descendants().holds(inode) {
			return p.foreign(h, "a TCP address on which another process listens")
		}
	}
	return nil
}

// checkPeer checks that the process that listened on a unix socket, or accepted a TCP connection, is the plugin's.
func (p *Process) checkPeer(ctx context.Context, conn net.Conn, h handshake) error {
	if socket, ok := conn.(*net.UnixConn); ok {
		listener, err := peer.Of(socket)
		if err == nil && !p.child.descendants().has(listener.PID) {
			err = p.foreign(h, fmt.Sprintf("a socket on which process %d listens, which is not one of its own", listener.PID))
		}
		return err
	}
	local, errLocal := netip.ParseAddrPort(conn.LocalAddr().String())
	remote, errRemote := netip.ParseAddrPort(conn.RemoteAddr().String())
	if errLocal != nil || errRemote != nil {
		return net.UnknownNetworkError(conn.LocalAddr().Network())
	}
	for {
		inode, found, err := tcpConnection(remote, local)
		switch {
		case err != nil:
			return err
		case !found:
			return unix.ECONNRESET
		case inode == 0: // not accepted yet
		case p.child.descendants().holds(inode):
			return nil
		default:
			return p.foreign(h, "a TCP address at which another process takes its connections")
		}
		if !pause(ctx, socketPoll) {
			return errGaveUp
		}
	}
}

// has reports whether a process belongs to the family.
func (f *family) has(pid int) bool {
	if pid == f.root.pid {
		return true
	}
	f.note()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.known {
		if id.pid == pid {
			return true
		}
	}
	return pid > 0 && readMark(pid) == f.mark
}

// holds reports whether a member of the family has a socket open.
func (f *family) holds(inode uint64) bool {
	if hasSocket(f.root.pid, inode) {
		return true
	}
	for _, p := range readProcesses(f.root.start) {
		if hasSocket(p.id.pid, inode) && f.has(p.id.pid) {
			return true
		}
	}
	return false
}

const tcpListen = 0x0a

type tcpRow struct {
	local, remote netip.AddrPort
	state         uint64
	inode         uint64 // 0 for a connection that was not accepted yet
}

// tcpListeners returns the sockets that listen on addr, or else those that listen on all addresses.
func tcpListeners(addr netip.AddrPort) ([]uint64, error) {
	addr = unmap(addr)
	var exact, wild []uint64
	err := eachTCP(func(r tcpRow) {
		switch {
		case r.state != tcpListen || r.local.Port() != addr.Port():
		case r.local == addr:
			exact = append(exact, r.inode)
		case r.local.Addr().IsUnspecified():
			wild = append(wild, r.inode)
		}
	})
	if len(exact) > 0 {
		return exact, err
	}
	return wild, err
}

func tcpConnection(local, remote netip.AddrPort) (inode uint64, found bool, err error) {
	local, remote = unmap(local), unmap(remote)
	err = eachTCP(func(r tcpRow) {
		if r.local == local && r.remote == remote {
			inode, found = r.inode, true
		}
	})
	return inode, found, err
}

// eachTCP calls f with each TCP socket of this network namespace.
func eachTCP(f func(tcpRow)) error {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && name == "/proc/self/net/tcp6" {
			continue // a system without IPv6
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if row, ok := parseTCP(line); ok {
				f(row)
			}
		}
	}
	return nil
}

func parseTCP(line string) (tcpRow, bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 {
		return tcpRow{}, false
	}
	local, okLocal := parseAddress(fields[1])
	remote, okRemote := parseAddress(fields[2])
	state, errState := strconv.ParseUint(fields[3], 16, 8)
	inode, errInode := strconv.ParseUint(fields[9], 10, 64)
	return tcpRow{local, remote, state, inode}, okLocal && okRemote && errState == nil && errInode == nil
}

// parseAddress reads hexadecimal address and port. The address is in 4-byte words of this machine's byte order.
func parseAddress(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	bytes, errHost := hex.DecodeString(host)
	number, errPort := strconv.ParseUint(port, 16, 16)
	if errHost != nil || errPort != nil || len(bytes)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := bytes; len(word) > 0; word = word[4:] {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	addr, ok := netip.AddrFromSlice(bytes)
	return unmap(netip.AddrPortFrom(addr, uint16(number))), ok
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

func hasSocket(pid int, inode uint64) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	want := "socket:[" + strconv.FormatUint(inode, 10) + "]"
	for _, e := range entries {
		if name, err := os.Readlink(dir + "/" + e.Name()); err == nil && name == want {
			return true
		}
	}
	return false
}
