package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// States of a row in /proc/net/tcp.
const tcpListen = 0x0a

// tcpRow is one row of the system's table of TCP sockets.
type tcpRow struct {
	local, remote netip.AddrPort
	state         uint64
	inode         uint64 // 0 of a connection that nobody has accepted
}

// tcpListeners returns the sockets of which one would be given a connection to
// addr: those that listen on it, or else those that listen on all addresses.
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

// tcpConnection returns the socket whose own end of a connection is local.
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
		file, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && name == "/proc/self/net/tcp6" {
			continue // a system without IPv6
		}
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if row, ok := parseTCP(lines.Text()); ok {
				f(row)
			}
		}
		closeQuietly(file)
		if err := lines.Err(); err != nil {
			return err
		}
	}
	return nil
}

// parseTCP reads a line of /proc/net/tcp. The headline is not one.
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

// parseAddress reads an address and a port in hexadecimal digits. The address
// is written in words of four bytes, each in this machine's order.
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

// unmap makes one address of the two forms that an IPv4 address has.
func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// hasSocket reports whether a process has a socket open.
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
