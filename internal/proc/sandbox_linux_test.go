package proc_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// skipShort skips a test of what the kernel denies or counts, for the race detector: the host does
// little at the same time there.
func skipShort(t *testing.T) {
	t.Helper()

	if testing.Short() {
		t.Skip("processes that attack the system, one after another: it runs without -short")
	}
}

// needT1 skips a test where the tier cannot be reached, and says why.
func needT1(t *testing.T) {
	t.Helper()

	if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil {
		t.Skip(err)
	}
}

// set makes a scene: files, listeners, a victim. It must be made anew for each
// plugin that attacks it.
func (b *testBench) set(t *testing.T) *scene {
	t.Helper()

	s := &scene{Granted: filepath.Join(b.dir, "granted"), Outside: filepath.Join(b.dir, "outside"), Offset: 2 << 20, Files: 400}
	t.Cleanup(func() {
		for _, dir := range []string{s.Granted, s.Outside} {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
	})
	s.layOut(t)
	s.listen(t, b.dir)
	s.expose(t)
	return s
}

// layOut makes the files.
func (s *scene) layOut(t *testing.T) {
	t.Helper()

	for _, dir := range []string{s.Granted, s.Outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		s.Granted + "/public-secret", s.Outside + "/secret", s.Outside + "/file", s.Outside + "/long", s.Outside + "/stolen", s.Outside + "/removed",
	} {
		if err := os.WriteFile(path, []byte("a secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Symlink(s.Outside+"/secret", s.Granted+"/link"),
		os.Link(s.Outside+"/secret", s.Granted+"/hard"),
		os.WriteFile(s.Outside+"/program", []byte("#!/bin/sh\n"), 0o700),
		os.WriteFile(s.Granted+"/setuid", self, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := errors.Join(os.Chown(s.Granted+"/setuid", nobody, nobody), os.Chmod(s.Granted+"/setuid", 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
	}
}

// listen opens what the plugin may try to reach.
func (s *scene) listen(t *testing.T, dir string) {
	t.Helper()

	s.Unix, s.Abstract = filepath.Join(dir, "outside", "s"), fmt.Sprintf("@grapnel-test-%d", os.Getpid())
	for _, l := range []struct{ network, addr string }{{"tcp", "127.0.0.1:0"}, {"unix", s.Unix}, {"unix", s.Abstract}} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), l.network, l.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		if l.network == "tcp" {
			s.TCP = listener.Addr().String()
		}
	}
	packets, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	s.UDP = packets.LocalAddr().String()
	s.Datagrams = filepath.Join(dir, "outside", "d")
	local, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "unixgram", s.Datagrams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	if s.Shared, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(s.Shared, unix.IPC_RMID, nil) })
}

// expose opens files in the host and starts the victim.
func (s *scene) expose(t *testing.T) {
	t.Helper()

	secret, err := os.Open(s.Outside + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = secret.Close() })
	s.HostFile = int(secret.Fd())
	if s.Stray, err = unix.FcntlInt(secret.Fd(), unix.F_DUPFD, 60); err != nil { // without FD_CLOEXEC
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(s.Stray) })
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	cmd.Env = []string{"PASSWORD=secret"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.Victim = cmd.Process.Pid
}

// attack starts a plugin that tries everything, and returns what came of it.
func (b *testBench) attack(t *testing.T, s *scene, confined proc.Sandbox) map[string]string {
	t.Helper()

	arg, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	spec := b.spec("attempts", string(arg))
	spec.Sandbox = confined
	p := b.start(t, spec)
	if got := p.Confinement().Tier.String(); got != confined.Tier.String() {
		t.Errorf("tier = %s, want %s", got, confined.Tier)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	results := map[string]string{}
	for l := b.waitLine(t, ""); l.Message != "done"; l = b.waitLine(t, "") {
		if text, ok := strings.CutPrefix(l.Message, "attempt "); ok {
			name, result, _ := strings.Cut(text, ": ")
			results[name] = result
		}
	}
	stop(t, p)
	return results
}

// confinement is the policy of the attacks.
func confinement(s *scene) proc.Sandbox {
	p := sandbox.Policy{Read: []string{s.Granted}}
	p.Limits = sandbox.Limits{Files: 256, FileSize: 1 << 20, Memory: 512 << 20}
	if raceDetector {
		p.Limits.Memory = sandbox.NoLimit
	}
	return proc.Sandbox{Tier: sandbox.T1, Policy: p}
}

// TestDenials proves each denial by an attempt from inside a plugin, and that
// the same attempt succeeds without the sandbox.
func TestDenials(t *testing.T) {
	skipShort(t)
	needT1(t)
	b := setup(t)
	results := map[bool]map[string]string{}
	for _, confined := range []bool{false, true} {
		t.Run(fmt.Sprintf("confined %v", confined), func(t *testing.T) {
			s := b.set(t)
			var how proc.Sandbox
			if confined {
				how = confinement(s)
			}
			results[confined] = b.attack(t, s, how)
		})
	}
	for _, a := range attempts() {
		if a.name == "fill the memory" && raceDetector {
			a.with = "ok" // the race detector needs more than any limit
		}
		if a.without == asRoot {
			a.without = "ok"
			if os.Geteuid() != 0 {
				a.without = results[false][a.name]
			}
		}
		if without, with := results[false][a.name], results[true][a.name]; without != a.without || with != a.with {
			t.Errorf("%s: %s without and %s with the sandbox, want %s and %s", a.name, without, with, a.without, a.with)
		}
	}
}

// networkGrants is the table of what comes of attempts with a port to connect
// to, with another port, with one to listen on, and with all of the network.
func networkGrants() map[string][4]string {
	paths := "ok" // before Landlock 9 they cannot be told from the granted network
	if sandbox.Probe().Landlock >= 9 {
		paths = "EACCES"
	}
	return map[string][4]string{
		"connect by TCP": {"ok", "EACCES", "EACCES", "ok"},
		"connect by TCP from a socket of the other version": {"ok", "EACCES", "EACCES", "ok"},
		"connect by TCP with the first data":                {"ENOTSUP", "ENOTSUP", "ENOTSUP", "ok"},
		"connect by TCP with the first message":             {"ENOTSUP", "ENOTSUP", "ENOTSUP", "ok"},
		"connect by TCP after an option":                    {"ENOPROTOOPT", "ENOPROTOOPT", "ENOPROTOOPT", "ok"},
		"connect by a protocol that is nearly TCP":          {"EPROTONOSUPPORT", "EPROTONOSUPPORT", "EPROTONOSUPPORT", "ok"},
		"listen on a TCP port":                              {"EACCES", "EACCES", "EACCES", "ok"},
		// The kernel picks the port, and asks nobody.
		"listen on a TCP port without binding":         {"ok", "ok", "ok", "ok"},
		"send a datagram":                              {"ok", "ok", "ok", "ok"},
		"speak to the kernel's network":                {"ok", "ok", "ok", "ok"},
		"connect to a unix socket by its path":         {paths, paths, paths, paths},
		"send a datagram to a unix socket by its path": {paths, paths, paths, paths},
		"connect to a unix socket of its own":          {"ok", "ok", "ok", "ok"},
		"connect to an abstract unix socket":           {"EPERM", "EPERM", "EPERM", "EPERM"},
		"make a ring that makes sockets":               {"EPERM", "EPERM", "EPERM", "EPERM"},
	}
}

func TestNetworkGrants(t *testing.T) {
	skipShort(t)
	needT1(t)
	grants := [4]struct {
		name  string
		grant func(port uint16) sandbox.Net
	}{
		{"a port to connect to", func(port uint16) sandbox.Net { return sandbox.Net{Connect: []uint16{port}} }},
		{"another port", func(port uint16) sandbox.Net { return sandbox.Net{Connect: []uint16{port%65535 + 1}} }},
		{"a port to listen on", func(port uint16) sandbox.Net { return sandbox.Net{Listen: []uint16{port}} }},
		{"everything", func(uint16) sandbox.Net { return sandbox.Net{All: true} }},
	}
	for i, tt := range grants {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			s := b.set(t)
			_, text, _ := strings.Cut(s.TCP, ":")
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				t.Fatal(err)
			}
			how := confinement(s)
			how.Policy.Net = tt.grant(uint16(port))
			results := b.attack(t, s, how)
			for name, want := range networkGrants() {
				if got := results[name]; got != want[i] {
					t.Errorf("%s: %s, want %s", name, got, want[i])
				}
			}
		})
	}
}

func TestNeverLessConfined(t *testing.T) {
	needT1(t)
	tests := []struct {
		name    string
		sandbox proc.Sandbox
		message string
	}{
		{"no control group", proc.Sandbox{Tier: sandbox.T2, Groups: "/nowhere"}, "the sandbox tier T2 is not reachable here: no control group was delegated: /nowhere is not a control group"},
		{"no tier", proc.Sandbox{Tier: 7}, "undefined tier 7"},
		{"a policy with a mistake", proc.Sandbox{Tier: sandbox.T1, Policy: sandbox.Policy{Read: []string{"x"}}}, `"x" is not absolute`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			spec := b.spec("serve")
			spec.Sandbox = tt.sandbox
			_, err := proc.Start(t.Context(), spec)
			if phases.CodeOf(err) != phases.CauseExecFailed || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("code %q: %v; want %q", phases.CodeOf(err), err, tt.message)
			}
		})
	}
}

func TestConfinedScripts(t *testing.T) {
	needT1(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, first string
		pin         bool
	}{
		{"by its interpreter", "#!/bin/sh", false},
		{"found by env", "#!/usr/bin/env sh", false},
		{"pinned", "#!/bin/sh", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			dir := filepath.Join(b.dir, "script")
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			text := tt.first + "\nexec " + self + " " + modeArg + " session\n"
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/plugin", []byte(text), 0o700)); err != nil {
				t.Fatal(err)
			}
			spec := b.spec("session")
			spec.Path, spec.Args, spec.Env.Set = dir+"/plugin", nil, map[string]string{"PATH": "/usr/bin:/bin"}
			if tt.pin {
				spec.SHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
			}
			spec.Sandbox = proc.Sandbox{Tier: sandbox.T1, Policy: sandbox.Policy{Read: []string{self}}}
			p := b.start(t, spec)
			stop(t, p)
		})
	}
}
