package docstest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

var shellBlock = regexp.MustCompile("(?m)^```sh\n((?s:.*?))^```$")

// TestBridgesInOneMinute does what BRIDGES.md says, word for word, as somebody who has nothing but a checkout and Go.
func TestBridgesInOneMinute(t *testing.T) {
	if !storetest.Long() {
		t.Skip("it builds programs: it runs with GRAPNEL_LONG=1")
	}
	t.Parallel()

	var blocks []string
	for _, m := range shellBlock.FindAllStringSubmatch(fileText(t, filepath.Join(root(t), "docs", "BRIDGES.md")), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 4 || !strings.Contains(fileText(t, filepath.Join(root(t), "README.md")), blocks[0]) {
		t.Fatalf("BRIDGES.md has %d blocks, or README.md another first one than %q", len(blocks), blocks)
	}
	home, err := os.MkdirTemp("", "walk") //nolint:usetesting // the test's own directory has too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endGateways(t, home)
		_ = os.RemoveAll(home)
	})
	for i, want := range []string{
		"the agent runs every hook that was called, and the gateway answers", "hook-check-", ".env is protected", "no hooks of Grapnel's",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", blocks[i])
		cmd.Dir = root(t)
		cmd.Env = []string{"HOME=" + home, "PATH=" + filepath.Join(home, "go", "bin") + ":" + os.Getenv("PATH"), "GOFLAGS=-buildvcs=false"}
		for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GONOSUMDB", "GOSUMDB"} { // what was built and fetched already
			value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v, want %q:\n%s\n%s", err, want, blocks[i], out)
		}
	}
	if _, err := os.Lstat(filepath.Join(home, ".claude", "settings.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that was not there is there: %v", err)
	}
}

// endGateways ends what the hooks have started.
func endGateways(t *testing.T, home string) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(home, ".local", "share", "grapnel", "run", "gateway-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range notes {
		pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "gateway-"), ".json"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", filepath.Join(home, ".grapnel", "hook.sock"))
		if err != nil {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, _ = io.Copy(io.Discard, conn) // until it has ended
		_ = conn.Close()
	}
}
