package sandbox

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHandledRights(t *testing.T) {
	t.Parallel()

	const first = 1<<13 - 1 // the thirteen rights of the first version
	tests := []struct {
		abi  int
		want uint64
	}{
		{1, first},
		{2, first | unix.LANDLOCK_ACCESS_FS_REFER},
		{3, first | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{4, first | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{5, 1<<16 - 1},
		{6, 1<<16 - 1},
		{7, 1<<16 - 1},
		{99, 1<<16 - 1},
	}
	for _, tt := range tests {
		if got := handled(tt.abi); got != tt.want {
			t.Errorf("version %d handles %#x, want %#x", tt.abi, got, tt.want)
		}
	}
	if rightsOf(AccessAll) != handled(abiIoctl) {
		t.Error("everything is not all that is handled")
	}
	for a := AccessRead; a < AccessAll; a++ {
		if a != AccessUse && rightsOf(a)&^rightsOf(AccessAll) != 0 {
			t.Errorf("access %d is no part of everything", a)
		}
	}
	if rightsOf(AccessNone) != 0 || rightsOf(AccessWrite)&(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV) != 0 {
		t.Error("a grant to write opens devices")
	}
}

// TestOlderVersions makes the rulesets that older kernels would get; this one
// takes them too.
func TestOlderVersions(t *testing.T) {
	t.Parallel()
	needLandlock(t)

	best := Probe()
	for abi := 1; abi <= best.Landlock; abi++ {
		s := best
		s.Landlock = abi
		r, err := newRuleset(s, Net{Connect: []uint16{443}})
		if err != nil {
			t.Fatalf("version %d: %v", abi, err)
		}
		dir := t.TempDir()
		for _, a := range []Access{AccessRead, AccessUse, AccessWrite, AccessAll} {
			for _, path := range []string{dir, "/dev/null"} {
				if err := r.path(path, a, true); err != nil {
					t.Errorf("version %d, access %d to %s: %v", abi, a, path, err)
				}
			}
		}
		if err := r.ports(Net{Connect: []uint16{443}, Listen: []uint16{80}}); (err != nil) != (abi < abiNet) {
			t.Errorf("version %d: ports: %v", abi, err)
		}
		if err := unix.Close(r.fd); err != nil {
			t.Error(err)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()

	s := Probe()
	if (s.Landlock == 0) != (s.NoLandlock != "") {
		t.Errorf("Probe = %+v", s)
	}
	t.Logf("this system: %+v", s)
}

func TestLoader(t *testing.T) {
	t.Parallel()

	sh, err := os.Open(shell)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sh.Close() }()
	if got := loader(sh); !strings.HasPrefix(got, "/lib") {
		t.Errorf("%s is linked by %q", shell, got)
	}
	for _, text := range []string{"", "#!/bin/sh\n", "\x7fELF garbage"} {
		if got := loader(strings.NewReader(text)); got != "" {
			t.Errorf("%q is linked by %q", text, got)
		}
	}
	kinds, loaders := Program{Files: []*os.File{sh}, Script: false}.kinds(Net{})
	if !kinds[KindEvery] || !kinds[KindDynamic] || kinds[KindScript] || kinds[KindNetwork] || len(loaders) != 1 {
		t.Errorf("kinds %v, loaders %v", kinds, loaders)
	}
	kinds, _ = Program{Script: true}.kinds(Net{Listen: []uint16{1}})
	if !kinds[KindScript] || !kinds[KindDynamic] || !kinds[KindNetwork] {
		t.Errorf("kinds of a script with network: %v", kinds)
	}
}

// run interprets a filter for one call, as the kernel does.
func run(code []unix.SockFilter, arch, number uint32, args [3]uint32) uint32 {
	data := map[uint32]uint32{offArch: arch, offNumber: number, offArg0: args[0], offArg1: args[1], offArg2: args[2]}
	var a uint32
	for pc := 0; pc < len(code); pc++ {
		in, jump := code[pc], false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = data[in.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump = a == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump = a >= in.K
		}
		if jump {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	return 0 // the kernel refuses such a filter
}

func TestFilter(t *testing.T) {
	t.Parallel()

	here := filterArch()
	if here == 0 {
		t.Skip("no filter for this machine")
	}
	some := Net{Connect: []uint16{443}}
	type call struct {
		number uint32
		args   [3]uint32
	}
	socket := func(family, kind, protocol uint32) call {
		return call{unix.SYS_SOCKET, [3]uint32{family, kind, protocol}}
	}
	tests := []struct {
		name             string
		call             call
		none, some, full uint32
	}{
		{"reading", call{number: unix.SYS_READ}, allow, allow, allow},
		{"ring", call{number: unix.SYS_IO_URING_SETUP}, refuse(unix.EPERM), refuse(unix.EPERM), refuse(unix.EPERM)},
		{"keys", call{number: unix.SYS_KEYCTL}, refuse(unix.EPERM), refuse(unix.EPERM), refuse(unix.EPERM)},
		{"unix", socket(unix.AF_UNIX, unix.SOCK_STREAM, 0), allow, allow, allow},
		{"TCP", socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0), refuse(unix.EACCES), allow, allow},
		{"TCP by name", socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP), refuse(unix.EACCES), allow, allow},
		{"datagrams", socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0), refuse(unix.EACCES), allow, allow},
		{"MPTCP", socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), refuse(unix.EACCES), refuse(unix.EPROTONOSUPPORT), allow},
		{"SCTP by its type", socket(unix.AF_INET, unix.SOCK_SEQPACKET, 0), refuse(unix.EACCES), refuse(unix.EPROTONOSUPPORT), allow},
		{"raw", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP), refuse(unix.EACCES), refuse(unix.EPROTONOSUPPORT), allow},
		{"netlink", socket(unix.AF_NETLINK, unix.SOCK_RAW, 0), refuse(unix.EACCES), allow, allow},
		{"between virtual machines", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), refuse(unix.EACCES), refuse(unix.EACCES), allow},
		{"packets", socket(unix.AF_PACKET, unix.SOCK_RAW, 0), refuse(unix.EACCES), refuse(unix.EACCES), allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			for _, c := range []struct {
				net  Net
				want uint32
			}{{Net{}, tt.none}, {some, tt.some}, {Net{All: true}, tt.full}} {
				if got := run(filterFor(c.net), here, tt.call.number, tt.call.args); got != c.want {
					t.Errorf("with the network %+v: %#x, want %#x", c.net, got, c.want)
				}
				if got := run(filterFor(c.net), here^1, tt.call.number, tt.call.args); got != refuse(unix.ENOSYS) {
					t.Errorf("by another interface: %#x", got)
				}
			}
		})
	}
	if here == unix.AUDIT_ARCH_X86_64 {
		if got := run(filterFor(Net{All: true}), here, unix.SYS_READ|x32Bit, [3]uint32{}); got != refuse(unix.ENOSYS) {
			t.Errorf("by x32: %#x", got)
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	if err := Probe().Check(Policy{}); err != nil {
		b.Skip(err)
	}
	sh, err := os.Open(shell)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sh.Close() }()
	dir := b.TempDir()
	for b.Loop() {
		c, err := Prepare(Policy{Read: []string{"/usr"}}, Program{Files: []*os.File{sh}, Folder: dir})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
