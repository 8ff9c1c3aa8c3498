package runtime_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestDirRoot: a turn whose working folder is not below the directory that bounds it is
// refused.
func TestDirRoot(t *testing.T) {
	t.Parallel()

	eng, err := runtime.New(t.Context(), &config.Config{}, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close(t.Context()) })
	for _, tt := range []struct {
		dir, root string
		ok        bool
	}{
		{"", "", true},
		{"/a/b", "", true},
		{"/a/b", "/a", true},
		{"/a", "/a", true},
		{"/a", "/", true},
		{"", "/a", true},
		{"/ab", "/a", false},
		{"/a/../b", "/a", false},
		{"/b", "/a", false},
		{"/a/b", "a", false},
	} {
		turn, err := eng.BeginTurn(t.Context(), phases.Context{Dir: tt.dir, DirRoot: tt.root})
		switch {
		case err == nil:
			outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{}))
			if !tt.ok {
				t.Errorf("%q in %q is taken", tt.dir, tt.root)
			}
		case tt.ok || !strings.Contains(err.Error(), "dir_root"):
			t.Errorf("%q in %q: %v", tt.dir, tt.root, err)
		}
	}
}
