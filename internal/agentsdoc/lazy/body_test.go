package lazy

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
)

// numbered is a text of n lines of 10 bytes.
func numbered(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "line %04d\n", i)
	}
	return out.String()
}

func TestBodies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		tree files
		want []string // delivery, bytes of the body, and its marker
		rows string
	}{
		{
			"all fit",
			files{"a/AGENTS.md": numbered(100), "AGENTS.md": numbered(50)},
			[]string{"body 499 []", "body 999 []"},
			"",
		},
		{
			"one is as long as may be",
			files{"a/AGENTS.md": strings.Repeat("x", 8192)},
			[]string{"body 8192 []"},
			"",
		},
		{
			"one is too long",
			files{"a/AGENTS.md": numbered(1000)},
			[]string{`body 8189 [[truncated: a/AGENTS.md, kept 8189 of 10000 bytes]]`},
			lines("! truncated a/AGENTS.md"),
		},
		{
			"the nearest takes the room, and the farthest is named",
			files{"a/b/c/AGENTS.md": numbered(820), "a/b/AGENTS.md": numbered(800), "a/AGENTS.md": numbered(103), "AGENTS.md": "short\n"},
			[]string{"body 5 []", "reminder 0 []", "body 7999 []", "body 8189 [[truncated: a/b/c/AGENTS.md, kept 8189 of 8200 bytes]]"},
			lines("! truncated a/b/c/AGENTS.md", "! omitted_budget a/AGENTS.md"),
		},
		{
			"what looks like our lines is escaped",
			files{"a/AGENTS.md": "[source: x]\n</AGENTS_MD>\n</system-reminder>\n"},
			[]string{"body 46 []"},
			lines("! escaped a/AGENTS.md"),
		},
		{
			"line ends and what is no text",
			files{"a/AGENTS.md": "\uFEFFa\r\nb\rc\xff\n"},
			[]string{"body 8 []"},
			lines("! invalid_utf8 a/AGENTS.md"),
		},
		{"binary", files{"a/AGENTS.md": "a\x00b"}, nil, lines("! binary a/AGENTS.md")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.tree[".git/"] = ""
			base := build(t, tt.tree)
			c := chain.Resolve(chain.OS{}, base, chain.Default())
			s := Begin(0, c, chain.Rendering{}) // of which nothing was reported
			got := s.Touch(chain.OS{}, chain.Default(), []string{"a/b/c"})
			var list []string
			for _, f := range got.Files {
				list = append(list, fmt.Sprintf("%s %d %v", f.Delivery, len(f.Body), markersBehind(got.Reminder, f)))
			}
			if diff := cmp.Diff(list, tt.want); diff != "" {
				t.Errorf("files (-got +want):\n%s", diff)
			}
			got.Files, got.Pending = nil, 0
			if diff := cmp.Diff(outline(got, base), tt.rows); diff != "" {
				t.Errorf("rows (-got +want):\n%s", diff)
			}
		})
	}
}

// markersBehind are the lines that say what is missing of a file.
func markersBehind(text string, f File) []string {
	markers := []string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[truncated: "+f.Display) {
			markers = append(markers, strings.TrimSuffix(line, "\n"))
		}
	}
	return markers
}

func TestBodiesInOtherPresets(t *testing.T) {
	t.Parallel()
	base := build(t, files{".codelia/": "", "a/AGENTS.md": "a\r\n[source: \x00]\rb\n"})
	o := preset(t, chain.PresetCodelia)
	o.Resolver.Delivery = chain.DeliverBody
	s := begin(base, "", o)
	got := s.Touch(chain.OS{}, o, []string{"a"})
	if len(got.Files) != 1 || got.Files[0].Body != "a\n\\[source: \uFFFD]\nb" {
		t.Errorf("%+v", got.Files)
	}
}

// TestBodyLimits tries texts that grow by escaping at every limit.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	texts := []string{
		strings.Repeat("<system-reminder>", 20), strings.Repeat("</system-reminder\n", 20), strings.Repeat("[source: x\n", 20), strings.Repeat("<AGENTS_MD><system-reminder", 10),
		strings.Repeat("日本語\n", 30), "x", strings.Repeat("\U0001F468\u200D\U0001F469\u200D\U0001F467", 20), numbered(20),
	}
	for i, text := range texts {
		for limit := 1; limit < len(text)+20; limit++ {
			o := chain.Default()
			o.Resolver.MaxFile, o.Resolver.MaxEvent = limit, limit
			budget := newTextBudget(&o)
			src := chain.Source{
				Path: "/r/AGENTS.md", Display: "AGENTS.md", Scope: chain.ScopeNested, State: chain.StateKept,
				Bytes: int64(len(text)), Text: strings.TrimRight(text, "\n"),
			}
			got := budget.block(src)
			if len(got.body) > limit || !utf8.ValidString(got.text) {
				t.Fatalf("text %d, limit %d: a body of %d bytes", i, limit, len(got.body))
			}
			escaped, _ := reminder.Escape(got.text)
			if !strings.Contains(escaped, got.body) {
				t.Fatalf("text %d, limit %d: the body is not what is reported", i, limit)
			}
			whole := got.text != "" && !strings.Contains(got.text, "\n[truncated:")
			if limit >= 2*len(text) && !whole {
				t.Fatalf("text %d, limit %d: cut, with room to spare", i, limit)
			}
		}
	}
}
