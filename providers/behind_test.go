package providers

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
)

// threeSections is a prompt whose plan has a breakpoint behind the second of three
// dynamic sections.
func threeSections(t testing.TB) Request {
	t.Helper()
	in := compiler.Input{
		Profile: "minimal", Host: compiler.HostTexts{Identity: "I", Safety: "S"},
		Sections: []phases.MergedSection{
			{SectionID: "a", Title: "A", Priority: 3, Content: "text of a"},
			{SectionID: "b", Title: "B", Priority: 2, Content: "text of b"},
			{SectionID: "c", Title: "C", Priority: 1, Content: "text of c"},
			{SectionID: "m", Title: "M", Content: "message", Placement: phases.PlacementSystemMessage},
		},
	}
	before, err := compiler.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	before.Sections[len(before.Sections)-2].Hash = "another c"
	m := before.Manifest()
	in.Previous = &compiler.Previous{Outline: m.Outline()}
	out, err := compiler.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Prompt: out.Prompt, Sections: out.Sections, Turn: []history.Entry{{Role: history.RoleUser, Text: "u"}}}
}

func TestAfterConversation(t *testing.T) {
	t.Parallel()

	const (
		stable   = "## Identity\n\nI\n\n## Safety\n\nS"
		boundary = "\n\n" + compiler.Boundary
		a, b, c  = "## A\n\ntext of a", "## B\n\ntext of b", "## C\n\ntext of c"
	)
	said := history.Entry{Role: history.RoleAssistant, Text: "x"}
	tests := []struct {
		name   string
		ids    []string
		change func(*Request)
		system string
		tail   string
		breaks string
		warns  string
	}{
		{name: "the last", ids: []string{"c"}, system: stable + boundary + "\n\n" + a + "\n\n" + b, tail: c, breaks: "safety b"},
		{name: "that of the breakpoint", ids: []string{"b"}, system: stable + boundary + "\n\n" + a + "\n\n" + c, tail: b, breaks: "safety a"},
		{name: "all before the breakpoint", ids: []string{"b", "a"}, system: stable + boundary + "\n\n" + c, tail: a + "\n\n" + b, breaks: "safety"},
		{name: "all", ids: []string{"a", "b", "c"}, system: stable, tail: a + "\n\n" + b + "\n\n" + c, breaks: "safety"},
		{
			name: "of other parts", ids: []string{"safety", "m", "c"}, system: stable + boundary + "\n\n" + a + "\n\n" + b, tail: c, breaks: "safety b",
			warns: "section_not_behind section_not_behind",
		},
		{
			name: "no stable part", ids: []string{"a"}, tail: a, system: b + "\n\n" + c, breaks: "b",
			change: func(r *Request) {
				r.Prompt.StableText, r.Prompt.Boundary, r.Prompt.FullText = "", "", r.Prompt.DynamicText
				r.Sections, r.Prompt.CachePlan.Breakpoints = r.Sections[2:], r.Prompt.CachePlan.Breakpoints[1:]
			},
		},
		{
			name: "the assistant spoke last", ids: []string{"c"}, change: func(r *Request) { r.Turn = append(r.Turn, said) },
			system: stable + boundary + "\n\n" + a + "\n\n" + b + "\n\n" + c, breaks: "safety b", warns: "section_not_behind",
		},
		{
			name: "nobody spoke", ids: []string{"c"}, change: func(r *Request) { r.Turn = nil },
			system: stable + boundary + "\n\n" + a + "\n\n" + b, tail: c, breaks: "safety b",
		},
		{
			name: "rows of another prompt", ids: []string{"c"}, change: func(r *Request) { r.Sections[3].Chars = 99 },
			system: stable + boundary + "\n\n" + a + "\n\n" + b + "\n\n" + c, breaks: "safety", warns: "section_not_behind breakpoint_omitted",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := threeSections(t)
			r.AfterConversation = tt.ids
			if tt.change != nil {
				tt.change(&r)
			}
			plan, sections := slices.Clone(r.Prompt.CachePlan.Breakpoints), slices.Clone(r.Sections)
			l := mustLay(t, r, Rules{Breakpoints: 4})
			if diff := cmp.Diff(r.Prompt.CachePlan.Breakpoints, plan) + cmp.Diff(r.Sections, sections); diff != "" {
				t.Errorf("the request was changed:\n%s", diff)
			}
			var breaks []string
			for _, s := range l.System {
				if s.Break.After != "" {
					breaks = append(breaks, s.Break.SectionID)
				}
			}
			got := []string{l.SystemText(), l.Tail, strings.Join(breaks, " "), warned(l)}
			if diff := cmp.Diff(got, []string{tt.system, tt.tail, tt.breaks, tt.warns}); diff != "" {
				t.Errorf("system, tail, breakpoints, warnings (-got +want):\n%s", diff)
			}
			if !strings.HasSuffix(l.SystemText(), l.DynamicText) {
				t.Errorf("dynamic text = %q", l.DynamicText)
			}
		})
	}
}
