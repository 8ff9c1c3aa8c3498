package proc_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// write makes an executable file in a safe directory and returns its path.
func write(t *testing.T, content []byte, mode os.FileMode) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// pipe makes a named pipe that nobody writes to, and returns its path.
func pipe(t *testing.T) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// script is a plugin in the form of a shell script.
func script(t *testing.T) []byte {
	t.Helper()

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "#!/bin/sh\necho \"zero $0\" >&2\nexec %s %s serve\n", self, modeArg)
}

// checksum returns the SHA-256 of a file in hex.
func checksum(t *testing.T, path string) string {
	t.Helper()

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestProgramsThatCannotRun(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	foreign := append([]byte(nil), self...)
	foreign[18], foreign[19] = 0xf3, 0 // RISC-V
	if os.Getenv("GOARCH") == "riscv64" {
		foreign[18] = 0x3e
	}
	wrong := strings.Repeat("0", 64)
	tests := []struct {
		name    string
		spec    func(t *testing.T, s *proc.Spec)
		code    phases.Cause
		message string
	}{
		{"absent", func(t *testing.T, s *proc.Spec) { s.Path = filepath.Join(t.TempDir(), "no") }, phases.CauseExecFailed, "no such file"},
		{"directory", func(t *testing.T, s *proc.Spec) { s.Path = t.TempDir() }, phases.CauseExecFailed, "not a regular file"},
		{"not executable", func(t *testing.T, s *proc.Spec) { s.Path = write(t, self, 0o600) }, phases.CauseExecFailed, "not executable"},
		{"another machine", func(t *testing.T, s *proc.Spec) { s.Path = write(t, foreign, 0o700) }, phases.CauseExecFailed, "it is built for EM_RISCV"},
		{"no program", func(t *testing.T, s *proc.Spec) { s.Path = write(t, []byte("hello\n"), 0o700) }, phases.CauseExecFailed, "without a #! line"},
		{"no interpreter", func(t *testing.T, s *proc.Spec) { s.Path = write(t, []byte("#!/no/such -x\n"), 0o700) }, phases.CauseExecFailed, `interpreter "/no/such" is absent`},
		{"another checksum", func(_ *testing.T, s *proc.Spec) { s.SHA256 = wrong }, phases.CauseChecksumMismatch, "not " + wrong + " as pinned"},
		{"another interpreter", func(t *testing.T, s *proc.Spec) {
			s.Path, s.Pins = write(t, script(t), 0o700), map[string]string{"/bin/sh": wrong}
		}, phases.CauseChecksumMismatch, "/bin/sh has the checksum"},
		{"pinned file replaced by a pipe", func(t *testing.T, s *proc.Spec) { s.Pins = map[string]string{pipe(t): wrong} }, phases.CauseChecksumMismatch, "not a regular file"},
		{"interpreter replaced by a pipe", func(t *testing.T, s *proc.Spec) {
			s.Path = write(t, []byte("#!"+pipe(t)+"\n"), 0o700)
		}, phases.CauseExecFailed, "is absent, or is not a file"},
		{"pinned file absent", func(_ *testing.T, s *proc.Spec) { s.Pins = map[string]string{"/no/such": wrong} }, phases.CauseChecksumMismatch, "no such file"},
		{"writable by all", func(t *testing.T, s *proc.Spec) { s.Path = write(t, self, 0o777) }, phases.CauseUnsafePath, "may be written by everybody"},
		{"in a directory writable by all", func(t *testing.T, s *proc.Spec) {
			s.Path = write(t, self, 0o700)
			chmod(t, filepath.Dir(s.Path), 0o777)
		}, phases.CauseUnsafePath, "may be written by everybody (mode 0777)"},
		{"link in a directory writable by all", func(t *testing.T, s *proc.Spec) {
			target := write(t, self, 0o700)
			s.Path = filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(target, s.Path); err != nil {
				t.Fatal(err)
			}
			chmod(t, filepath.Dir(s.Path), 0o777)
		}, phases.CauseUnsafePath, "may be written by everybody"},
		{"argument with NUL", func(_ *testing.T, s *proc.Spec) { s.Args = []string{"a\x00b"} }, phases.CauseExecFailed, "invalid argument"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			s := b.spec("serve")
			tt.spec(t, &s)
			_, err := proc.Start(t.Context(), s)
			if err == nil {
				t.Fatal("the program was started")
			}
			if got := phases.CodeOf(err); got != tt.code {
				t.Errorf("code = %q, want %q: %v", got, tt.code, err)
			}
			if !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %q does not contain %q", err, tt.message)
			}
		})
	}
}

// chmod sets a mode that the umask would not let through.
func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()

	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestProgramsThatRun(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec func(t *testing.T, s *proc.Spec)
		zero string // what $0 of a script begins with
	}{
		{"pinned binary", func(t *testing.T, s *proc.Spec) { s.SHA256 = strings.ToUpper(checksum(t, s.Path)) }, ""},
		{"in a sticky directory", func(t *testing.T, s *proc.Spec) {
			s.Path = write(t, self, 0o700)
			chmod(t, filepath.Dir(s.Path), 0o777|os.ModeSticky)
		}, ""},
		{"unsafe by the operator's will", func(t *testing.T, s *proc.Spec) {
			s.Path, s.AllowUnsafePath = write(t, self, 0o777), true
		}, ""},
		{"script", func(t *testing.T, s *proc.Spec) { s.Path = write(t, script(t), 0o700) }, os.TempDir()},
		{"pinned script", func(t *testing.T, s *proc.Spec) {
			s.Path = write(t, script(t), 0o700)
			s.SHA256 = checksum(t, s.Path)
		}, ""},
		{"pinned interpreter", func(t *testing.T, s *proc.Spec) {
			s.Path = write(t, script(t), 0o700)
			s.Pins = map[string]string{"/bin/sh": checksum(t, "/bin/sh")}
		}, os.TempDir()},
		{"both pinned", func(t *testing.T, s *proc.Spec) {
			s.Path = write(t, script(t), 0o700)
			s.SHA256, s.Pins = checksum(t, s.Path), map[string]string{"/bin/sh": checksum(t, "/bin/sh")}
		}, "/proc/self/fd/3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			s := b.spec("serve")
			tt.spec(t, &s)
			p := b.start(t, s)
			if got := p.SHA256(); !strings.EqualFold(got, s.SHA256) {
				t.Errorf("SHA256 = %q, want %q", got, s.SHA256)
			}
			if tt.zero != "" {
				if got := b.waitLine(t, "zero ").Message; !strings.HasPrefix(got, "zero "+tt.zero) {
					t.Errorf("script says %q, want %q", got, tt.zero)
				}
			}
			if p.Confinement().Tier.String() != "T0" {
				t.Errorf("tier = %q", p.Confinement().Tier.String())
			}
		})
	}
}

// TestSums: a program that is not pinned is hashed, and read again only when its file was written.
func TestSums(t *testing.T) {
	b := setup(t)
	var sums proc.Sums
	sumOf := func(path string) string {
		s := b.spec("serve")
		s.Path, s.Sums = path, &sums
		return b.start(t, s).SHA256()
	}
	first := write(t, script(t), 0o700)
	if got, want := sumOf(first), checksum(t, first); got != want {
		t.Errorf("SHA256 = %q, want %q", got, want)
	}
	sums.Forge("remembered")
	if got := sumOf(first); got != "remembered" {
		t.Errorf("the second start read the file again: %q", got)
	}
	info, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(script(t), []byte("zero"), []byte("nero"), 1) // as long as before
	if err := os.WriteFile(first, changed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(first, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, want := sumOf(first), checksum(t, first); got != want {
		t.Errorf("a changed file with its old time: SHA256 = %q, want %q", got, want)
	}
}

// openSelf opens a copy of the test binary and deletes it.
func openSelf(t *testing.T) *os.File {
	t.Helper()

	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(write(t, self, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestOwnBinaryIsExecutedByHandle(t *testing.T) {
	f := openSelf(t)
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	b := setup(t)
	s := b.spec("serve")
	s.Path, s.File = f.Name(), f
	first, second := b.start(t, s), b.start(t, s)
	if first.PID() == second.PID() || first.SHA256() != "" {
		t.Errorf("processes %d and %d, checksum %q", first.PID(), second.PID(), first.SHA256())
	}
	s.SHA256 = strings.Repeat("0", 64)
	if _, err := proc.Start(t.Context(), s); phases.CodeOf(err) != phases.CauseChecksumMismatch {
		t.Errorf("start with another checksum: %v", err)
	}
}

func TestPluginNeverStartsItself(t *testing.T) {
	if proc.InsidePlugin() {
		t.Fatal("the test takes itself for a plugin")
	}
	t.Setenv(wire.HandshakeCookieKey, wire.HandshakeCookieValue)
	if !proc.InsidePlugin() {
		t.Fatal("the cookie is not noticed")
	}
	b := setup(t)
	byPath, byFile := b.spec("serve"), b.spec("serve")
	byFile.File = openSelf(t)
	for _, s := range []proc.Spec{byPath, byFile} {
		_, err := proc.Start(t.Context(), s)
		if phases.CodeOf(err) != phases.CauseExecFailed || !strings.Contains(err.Error(), "does not start itself") {
			t.Errorf("start inside a plugin: %v", err)
		}
	}
	other := b.spec("serve")
	other.Path = write(t, script(t), 0o700)
	b.start(t, other)
}
