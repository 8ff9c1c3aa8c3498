//go:build unix

package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestDirs checks that a turn's dir lies below a root, whatever it looks like, and
// that what is elsewhere on the disk is not told.
func TestDirs(t *testing.T) {
	t.Parallel()

	top := must(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, dir := range []string{"root/in", "root-not", "out"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "root", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"root/away": "../out", "root/loop": "loop", "root/inside": "in", "link": "root/in", "alias": "root"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	eng := &fakeEngine{done: &runtime.Compiled{}, out: &phases.Outcome{}}
	c := serve(t, Options{Tree: treeOf(t, "w"), Engine: eng, Roots: []string{filepath.Join(top, "root", "in"), filepath.Join(top, "alias")}}).post(t, "")
	for dir, want := range map[string]string{
		"root": "root", "root/in": "root/in", "root/inside": "root/in", "link": "root/in", "root/./in/../in": "root/in", "alias/in": "root/in",
		"out": "", "root/..": "", "root/../out": "", "root/away": "", "root-not": "", "root/file": "", "root/none": "", "root/loop": "", "none": "", "": "",
	} {
		path := top + "/" + dir
		for _, method := range []string{"turn/compile", "phase/dispatch"} {
			eng.turn = phases.Context{}
			params := object{"turn": turnOf(object{"dir": path})}
			if method == "phase/dispatch" {
				params = object{"phase": "turn.pre_policy", "context": object{"dir": path}}
			}
			_, bad := c.call(t, method, params)
			switch {
			case want == "":
				if bad.code() != rpc.CodeInvalid || !strings.HasSuffix(bad.Message, "is not a directory in the gateway's roots") || eng.turn.Dir != "" {
					t.Errorf("%s with %s: %+v", method, dir, bad)
				}
			case bad != nil || eng.turn.Dir != filepath.Join(top, want) || eng.turn.DirRoot != filepath.Join(top, "root"):
				t.Errorf("%s with %s: %+v, dir %s in %s, want %s", method, dir, bad, eng.turn.Dir, eng.turn.DirRoot, want)
			}
		}
	}
	if _, bad := c.call(t, "turn/compile", object{"turn": turnOf(object{"dir": "root"})}); bad.code() != rpc.CodeInvalid {
		t.Errorf("a relative dir: %+v", bad)
	}
	for _, dir := range []string{"", filepath.Join(top, "root", "in")} {
		if _, bad := c.call(t, "turn/compile", object{"turn": turnOf(object{"dir": dir, "dir_root": "/"})}); bad.code() != rpc.CodeInvalid || !strings.Contains(bad.Message, "turn.dir_root") {
			t.Errorf("a client's own dir_root: %+v", bad)
		}
	}
	closed := serve(t, Options{Tree: treeOf(t, "w"), Engine: eng}).post(t, "")
	if _, bad := closed.call(t, "turn/compile", object{"turn": turnOf(object{"dir": top})}); bad.code() != rpc.CodeInvalid || !strings.Contains(bad.Message, "no roots") {
		t.Errorf("without roots: %+v", bad)
	}
}
