package lazy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// resumed prints the rows of an answer.
func resumed(got Resumed, base string) string {
	var out strings.Builder
	for _, c := range got.Changes {
		fmt.Fprintf(&out, "%s %t", c.What, c.Named)
		if c.Path != "" {
			fmt.Fprintf(&out, " %s %t %t", short(c.Path, base), c.From != "", c.To != "")
		} else {
			fmt.Fprintf(&out, " %s -> %s", short(c.From, base), short(c.To, base))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

var mtimes = regexp.MustCompile(`mtime: \d+`)

// TestMove says the same of a session that goes on, in other words.
func TestMove(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "root\n", "a/AGENTS.md": "a\n"})
	s := begin(base, "a", chain.Default())
	now := func() chain.Chain { return chain.Resolve(chain.OS{}, filepath.Join(base, "a"), chain.Default()) }
	if got := s.Move(now()); got.Changed || got.Reminder != "" {
		t.Errorf("where it was: %+v", got)
	}
	put(t, base, "a/.git/", "")
	r := s.Clone()
	got, want := s.Move(now()), r.Resume(now())
	want.Reminder = strings.Replace(want.Reminder, "The session was resumed, and its context has changed:", "The context of the session has changed:", 1)
	if got.Message.Text == want.Message.Text {
		t.Error("it says that the session was resumed")
	}
	want.Message.Text = got.Message.Text
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s, r); diff != "" {
		t.Errorf("the state (-got +want):\n%s", diff)
	}
}
