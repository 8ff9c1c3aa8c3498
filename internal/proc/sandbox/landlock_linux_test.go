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
		{5, 1<<16 - 1},
		{9, 1<<17 - 1},
	}
	for _, tt := range tests {
		if got := handled(tt.abi); got != tt.want {
			t.Errorf("version %d handles %#x, want %#x", tt.abi, got, tt.want)
		}
	}
	if rightsOf(AccessAll) != handled(abiUnix) {
		t.Error("everything is not all that is handled")
	}
	for a := AccessRead; a < AccessAll; a++ {
		if a != AccessUse && rightsOf(a)&^rightsOf(AccessAll) != 0 {
			t.Errorf("access %d is no part of everything", a)
		}
	}
	if rightsOf(AccessNone) != 0 || rightsOf(AccessWrite)&(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV|unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX) != 0 {
		t.Error("a grant to write opens devices or sockets")
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
				if _, err := r.path(path, a); err != nil {
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
