package lazy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// reported prints what Changed answers.
func reported(got Changes, base string) string {
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

func TestChanged(t *testing.T) {
	t.Parallel()
	tree := files{".git/": "", "AGENTS.md": "root\n", "a/AGENTS.md": "a\n", "a/b/AGENTS.md": "b\n"}
	type event struct {
		change func(testing.TB, string)
		touch  string
		want   string
	}
	gone := func(name string) func(testing.TB, string) {
		return func(tb testing.TB, base string) { remove(tb, base, name) }
	}
	updatedRoot := lines("updated body AGENTS.md", "! changed AGENTS.md")
	tests := []struct {
		name   string
		change func(o *chain.Options)
		events []event
	}{
		{"nothing", nil, []event{{want: ""}}},
		{"updated, once", nil, []event{{change: edited("AGENTS.md", "x\n"), want: updatedRoot}, {want: ""}}},
		{"new", nil, []event{
			{change: edited("a/AGENTS.local.md", "l\n"), want: lines("new body a/AGENTS.local.md", "! added a/AGENTS.local.md")},
			{want: ""},
		}},
		{"removed, and there again", nil, []event{
			{change: gone("a/AGENTS.md"), want: lines("removed reminder a/AGENTS.md", "! removed a/AGENTS.md")},
			{want: ""},
			{change: edited("a/AGENTS.md", "a\n"), want: lines("new reminder a/AGENTS.md", "! added a/AGENTS.md")},
			{want: ""},
		}},
		{"blank is removed", nil, []event{
			{change: edited("a/AGENTS.md", "\n"), want: lines("removed reminder a/AGENTS.md", "! removed a/AGENTS.md")},
		}},
		{"all at once, in the order of the chain", nil, []event{{change: func(tb testing.TB, base string) {
			put(tb, base, "AGENTS.md", "x\n")
			remove(tb, base, "a/AGENTS.md")
			put(tb, base, "a/b/AGENTS.local.md", "y\n")
		}, want: lines("updated body AGENTS.md", "new body a/b/AGENTS.local.md", "removed reminder a/AGENTS.md",
			"! changed AGENTS.md", "! added a/b/AGENTS.local.md", "! removed a/AGENTS.md")}}},
		{"what a touch delivered is not reported again", nil, []event{
			{change: edited("AGENTS.md", "x\n"), touch: "a", want: ""},
			{change: edited("AGENTS.md", "y\n"), want: updatedRoot},
		}},
		{"what comes back is named", nil, []event{
			{change: edited("AGENTS.md", "x\n"), want: updatedRoot},
			{change: edited("AGENTS.md", "root\n"), want: lines("updated reminder AGENTS.md", "! changed AGENTS.md")},
			{want: ""},
			{change: edited("AGENTS.md", "x\n"), want: lines("updated reminder AGENTS.md", "! changed AGENTS.md")},
		}},
		{"what a touch reported of comes back", nil, []event{
			{change: edited("AGENTS.md", "x\n"), touch: "a", want: ""},
			{change: edited("AGENTS.md", "root\n"), want: lines("updated reminder AGENTS.md", "! changed AGENTS.md")},
		}},
		{"a time is no change", nil, []event{{change: age("AGENTS.md"), want: ""}}},
		{"unless the options say so", func(o *chain.Options) { o.Resolver.ChangedWhen = chain.ChangedByTimeOrHash }, []event{
			{change: age("AGENTS.md"), want: updatedRoot},
			{want: ""},
		}},
		{"by name", func(o *chain.Options) { o.Resolver.Delivery = chain.DeliverReminder }, []event{
			{change: edited("AGENTS.md", "x\n"), want: lines("updated reminder AGENTS.md", "! changed AGENTS.md")},
		}},
		{"at most so many, the nearest first", func(o *chain.Options) { o.Resolver.MaxFiles = 2 }, []event{
			{change: func(tb testing.TB, base string) {
				put(tb, base, "AGENTS.md", "x\n")
				put(tb, base, "a/AGENTS.md", "y\n")
				put(tb, base, "a/b/AGENTS.md", "z\n")
			}, want: lines("updated body a/AGENTS.md", "updated body a/b/AGENTS.md", "pending 1", "! changed a/AGENTS.md", "! changed a/b/AGENTS.md")},
			{want: updatedRoot},
			{want: ""},
		}},
		{"never", func(o *chain.Options) { o.Resolver.ChangedWhen = chain.ChangedNeverResolved }, []event{
			{change: edited("AGENTS.md", "x\n"), want: ""},
		}},
		{"a long one is cut", nil, []event{
			{change: edited("AGENTS.md", numbered(900)), want: lines("updated body AGENTS.md", "! changed AGENTS.md", "! truncated AGENTS.md")},
		}},
		{"a text that stands nearer as well", nil, []event{
			{change: edited("a/AGENTS.md", "b\n"), want: lines("updated reminder a/AGENTS.md", "! changed a/AGENTS.md")},
			{change: edited("a/AGENTS.local.md", "b\n"), want: lines()},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := chain.Default()
			if tt.change != nil {
				tt.change(&o)
			}
			base := build(t, tree)
			dir := filepath.Join(base, "a", "b")
			s := begin(base, "a/b", o)
			for i, e := range tt.events {
				if e.change != nil {
					e.change(t, base)
				}
				if e.touch != "" {
					s.Touch(chain.OS{}, o, []string{filepath.Join(base, e.touch)})
				}
				got := s.Changed(chain.Resolve(chain.OS{}, dir, o))
				if diff := cmp.Diff(reported(got, base), e.want); diff != "" {
					t.Errorf("event %d (-got +want):\n%s", i, diff)
				}
				if (got.Reminder != "") != (len(got.Files) > 0) {
					t.Errorf("event %d: the reminder is %q", i, got.Reminder)
				}
				s = again(t, s)
			}
		})
	}
}

// TestTouchAfterChanged says that what was reported is not delivered again.
func TestTouchAfterChanged(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "root\n"})
	s := begin(base, "", chain.Default())
	put(t, base, "AGENTS.md", "x\n")
	s.Changed(chain.Resolve(chain.OS{}, base, chain.Default()))
	if got := s.Touch(chain.OS{}, chain.Default(), []string{"."}); len(got.Files) > 0 {
		t.Errorf("%+v", got.Files)
	}
	put(t, base, "AGENTS.md", "root\n")
	if got := s.Touch(chain.OS{}, chain.Default(), []string{"."}); len(got.Files) > 0 {
		t.Errorf("the content of the first prompt: %+v", got.Files)
	}
}

// TestOmittedIsDelivered says that a file that had no room in the first prompt is
// delivered when its directory is touched, and is no change.
func TestOmittedIsDelivered(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "root\n", "a/AGENTS.md": "a\n"})
	o := chain.Default()
	o.Budget.Files = 1
	s := begin(base, "a", o)
	if got := s.Changed(chain.Resolve(chain.OS{}, filepath.Join(base, "a"), o)); len(got.Files) > 0 {
		t.Errorf("changed: %+v", got.Files)
	}
	got := s.Touch(chain.OS{}, o, []string{"."})
	if diff := cmp.Diff(outline(got, base), lines("new body AGENTS.md")); diff != "" {
		t.Errorf("touch (-got +want):\n%s", diff)
	}
}
