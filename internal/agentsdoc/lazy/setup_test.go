package lazy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

var build, put = agentsdoctest.Build, agentsdoctest.Put

type files = agentsdoctest.Tree

// remove removes what a tree has under a name.
func remove(tb testing.TB, base, name string) {
	tb.Helper()
	if err := os.RemoveAll(filepath.Join(base, filepath.FromSlash(name))); err != nil {
		tb.Fatal(err)
	}
}

// preset are the options of a preset for a user without directories.
func preset(tb testing.TB, name chain.Preset) chain.Options {
	tb.Helper()
	o, err := chain.ForPreset(name, chain.Places{})
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// begin is a session whose working directory is the one below base.
func begin(base, dir string, o chain.Options) State {
	c := chain.Resolve(chain.OS{}, filepath.Join(base, filepath.FromSlash(dir)), o)
	return Begin(0, c, chain.Render(c, chain.Budget{Bytes: 1 << 20, Chars: 1 << 20}))
}

// outline prints what an answer says, one line a row, with paths below base.
func outline(got Touched, base string) string {
	var out strings.Builder
	for _, f := range got.Files {
		fmt.Fprintf(&out, "%s %s %s\n", f.Reason, f.Delivery, short(f.Path, base))
	}
	if got.Pending > 0 {
		fmt.Fprintf(&out, "pending %d\n", got.Pending)
	}
	for _, d := range got.Diagnostics {
		fmt.Fprintf(&out, "! %s %s\n", d.Code, short(d.Path, base))
	}
	return out.String()
}

// short is a path below base.
func short(path, base string) string {
	return filepath.ToSlash(strings.TrimPrefix(path, base+separator))
}

// lines joins lines as outline prints them.
func lines(list ...string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}
