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

func TestResume(t *testing.T) {
	t.Parallel()
	tree := files{
		".git/": "", "AGENTS.md": "root\n", "a/AGENTS.md": "a\n", "b/AGENTS.md": "b\n", "b/c/AGENTS.md": "c\n", "n/.git/": "", "n/AGENTS.md": "n\n",
	}
	tagged := func(text string) string {
		if text == "" {
			return ""
		}
		return `<system-reminder type="session.resume.diff">` + "\n" + text + "</system-reminder>"
	}
	context := "The session was resumed, and its context has changed:\n"
	look := "Look again at the instruction files in scope before you go on"
	tests := []struct {
		name     string
		dir, now string
		touch    string
		change   func(testing.TB, string)
		options  func(o *chain.Options) // when it is resumed
		rows     string
		text     string
	}{
		{
			"nothing", "a", "a", "", nil, nil, "", "",
		},
		{
			"another directory", "a", "b", "", nil, nil,
			lines("cwd true a -> b", "added true b/AGENTS.md false true", "removed true a/AGENTS.md true false"),
			context + "- cwd: BASE/a -> BASE/b\n" + look + ":\n- BASE/b/AGENTS.md (mtime: N)\nNo longer in scope:\n- BASE/a/AGENTS.md\n",
		},
		{
			"a directory without files", "", "b/c/d", "b/c", func(tb testing.TB, base string) { put(tb, base, "b/c/d/", "") }, nil,
			lines("cwd true BASE -> b/c/d"),
			context + "- cwd: BASE -> BASE/b/c/d\n" + look + ".\n",
		},
		{
			"another root", "b", "n", "", nil, nil,
			lines("cwd true b -> n", "root true BASE -> n", "added true n/AGENTS.md false true", "removed true AGENTS.md true false", "removed true b/AGENTS.md true false"),
			context + "- cwd: BASE/b -> BASE/n\n- root: BASE -> BASE/n\n" + look + ":\n- BASE/n/AGENTS.md (mtime: N)\nNo longer in scope:\n- BASE/AGENTS.md\n- BASE/b/AGENTS.md\n",
		},
		{
			"other markers", "a", "a", "", nil, func(o *chain.Options) { o.Markers = []string{".git", "<x>"} },
			lines(`markers true [".git",".jj",".hg"] -> [".git","\u003cx\u003e"]`),
			context + `- markers: [".git",".jj",".hg"] -> [".git","\\u{3c}x\\u{3e}"]` + "\n" + look + ".\n",
		},
		{
			"an edit", "a", "a", "", edited("AGENTS.md", "x\n"), nil,
			lines("updated true AGENTS.md true true"), //nolint:dupword // columns
			context + look + ":\n- BASE/AGENTS.md (mtime: N)\n",
		},
		{
			"more than there are lines for", "b/c", "b/c", "", func(tb testing.TB, base string) {
				for i, name := range []string{"AGENTS.md", "b/AGENTS.md", "b/c/AGENTS.md", "AGENTS.local.md", "b/AGENTS.local.md"} {
					put(tb, base, name, fmt.Sprintf("other %d\n", i))
				}
			}, nil,
			lines("updated false AGENTS.md true true", "added false AGENTS.local.md false true", "updated true b/AGENTS.md true true", //nolint:dupword // columns
				"added true b/AGENTS.local.md false true", "updated true b/c/AGENTS.md true true"), //nolint:dupword // columns
			context + look + ":\n- BASE/b/AGENTS.md (mtime: N)\n- BASE/b/AGENTS.local.md (mtime: N)\n- BASE/b/c/AGENTS.md (mtime: N)\n- and 2 more\n",
		},
		{
			"codelia names what is as it was", "a", "b", "", nil, codelia,
			lines("cwd true a -> b", `markers true [".git",".jj",".hg"] -> [".codelia",".git",".jj"]`, "added true b/AGENTS.md false true", "removed true a/AGENTS.md true false"),
			context + "- cwd: BASE/a -> BASE/b\n- root: BASE -> BASE\n" + `- markers: [".git",".jj",".hg"] -> [".codelia",".git",".jj"]` + "\n" +
				look + ":\n- BASE/b/AGENTS.md (mtime: N)\nNo longer in scope:\n- BASE/a/AGENTS.md\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, tree)
			s := begin(base, tt.dir, chain.Default())
			if tt.touch != "" {
				s.Touch(chain.OS{}, chain.Default(), []string{tt.touch})
			}
			if tt.change != nil {
				tt.change(t, base)
			}
			o := chain.Default()
			if tt.options != nil {
				tt.options(&o)
			}
			s = again(t, s)
			now := chain.Resolve(chain.OS{}, filepath.Join(base, tt.now), o)
			got := s.Resume(now)
			if diff := cmp.Diff(strings.ReplaceAll(resumed(got, base), base, "BASE"), tt.rows); diff != "" {
				t.Errorf("rows (-got +want):\n%s", diff)
			}
			text := mtimes.ReplaceAllString(strings.ReplaceAll(got.Reminder, base, "BASE"), "mtime: N")
			if diff := cmp.Diff(text, tagged(tt.text)); diff != "" {
				t.Errorf("text (-got +want):\n%s", diff)
			}
			if got.Changed != (len(got.Changes) > 0) || got.Root != now.Root {
				t.Errorf("changed %t, root %s", got.Changed, got.Root)
			}
			if again := s.Resume(now); again.Changed {
				t.Errorf("the second time:\n%s", resumed(again, base))
			}
		})
	}
}

// codelia makes options those of the preset.
func codelia(o *chain.Options) {
	p, err := chain.ForPreset(chain.PresetCodelia, chain.Places{})
	if err == nil {
		*o = p
	}
}

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
