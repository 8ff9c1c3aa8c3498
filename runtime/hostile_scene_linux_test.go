package runtime_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// hostileScene is what the plugins of a host find to attack.
type hostileScene struct {
	canary, loot string
	before       map[string]string
	args         []string
}

// newScene lays out the canary, which nobody may touch, a place for loot, and sockets.
func newScene(t *testing.T) *hostileScene {
	t.Helper()
	dir := t.TempDir()
	s := &hostileScene{canary: filepath.Join(dir, "canary"), loot: filepath.Join(dir, "loot")}
	for _, path := range []string{s.canary, s.loot, s.canary + "/sub"} {
		if err := os.MkdirAll(path, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1e9, 0)
	for name, mode := range map[string]fs.FileMode{"secret": 0o640, "sub/closed": 0o400, "sub/program": 0o755} {
		path := filepath.Join(s.canary, name)
		if err := errors.Join(os.WriteFile(path, []byte("a secret"), 0o600), os.Chmod(path, mode), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	tcp := listenOn(t, "tcp", "127.0.0.1:0")
	abstract := fmt.Sprintf("@grapnel-hostile-%d", os.Getpid())
	listenOn(t, "unix", abstract)
	listenOn(t, "unix", s.canary+"/socket")
	if err := errors.Join(os.Chtimes(s.canary, old, old), os.Chtimes(s.canary+"/sub", old, old)); err != nil {
		t.Fatal(err)
	}
	s.args = []string{
		"canary=" + s.canary, "loot=" + s.loot, "host=" + strconv.Itoa(os.Getpid()), "tcp=" + tcp, "abstract=" + abstract, s.label(),
	}
	s.before = snapshot(t, s.canary)
	return s
}

// label is an argument that all processes of the scene's plugins bear.
func (s *hostileScene) label() string { return fmt.Sprintf("scene=%d", os.Getpid()) }

func listenOn(t *testing.T, network, addr string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// snapshot writes down a tree: modes, owners, lengths, times, contents.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%v %d %v", info.Mode(), info.Size(), info.ModTime().UnixNano())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			line += fmt.Sprintf(" %d:%d inode %d", st.Uid, st.Gid, st.Ino)
		}
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		tree[path] = line
		return nil
	})
	if err != nil {
		t.Errorf("the canary cannot be read: %v", err)
	}
	return tree
}
