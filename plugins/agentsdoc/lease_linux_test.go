package agentsdoc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestLeasedFile: while somebody holds a lease on an instruction file no turn goes without
// the instructions, and nothing of that is remembered.
func TestLeasedFile(t *testing.T) {
	t.Parallel()

	base := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "be brief"})
	eng := inside(t, "{global: false}", runtime.Options{})
	h := session(t, eng, "s", base)
	file, err := os.Open(filepath.Join(base, "AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases here: ", err)
	}
	_, err = h.turn().Compile(t.Context(), runtime.CompileInput{})
	if coded, ok := errors.AsType[*phases.Error](err); !ok || coded.PluginCode != "file_busy" || coded.Subscription != "agentsdoc.prompt" {
		t.Errorf("beside a lease: %+v, want file_busy", err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	if text := section(h.compile()); !strings.Contains(text, "be brief") {
		t.Errorf("after the lease the section is %q", text)
	}
}
