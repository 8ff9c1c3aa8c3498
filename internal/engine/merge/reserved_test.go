package merge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// TestNoSectionReadsLikeTheCompilers: whatever a plugin is granted by wildcard, nothing of it reads like a section of the
// compiler's own; and what a person wrote into AGENTS.md reaches the model as it is, in a frame that shows none either.
func TestNoSectionReadsLikeTheCompilers(t *testing.T) {
	t.Parallel()

	framed := func(id, open, content, end string) phases.PromptSection {
		return phases.PromptSection{SectionID: id, Content: content, Frame: &phases.Frame{Open: open, Close: end}}
	}
	titled := func(title, content string) phases.PromptSection {
		return phases.PromptSection{SectionID: "s", Title: title, Content: content}
	}
	known := []string{"agents_md"}
	tests := []struct {
		name    string
		section phases.PromptSection
		granted []string // sections; everything by wildcard if empty
		want    string   // title and content; empty if it is refused
		escaped bool     // and a diagnostic says so
	}{
		{"id", phases.PromptSection{SectionID: "safety", Content: "x"}, nil, "", false},
		{"id with other marks", phases.PromptSection{SectionID: "Soul-Core", Content: "x"}, nil, "", false},
		{"id of a row for hooks, written otherwise", phases.PromptSection{SectionID: "AGENTS.md", Content: "x"}, nil, "", false},
		{"row for hooks, by wildcard", phases.PromptSection{SectionID: "agents_md", Content: "x"}, nil, "", false},
		{"title with unseen characters", titled(" Sa\u200bfety:", "x"), nil, ": x", true},
		{"title with markup", titled("[Safety](http://x) <!-- x -->", "x"), nil, ": x", true},
		{"title in another script", titled("Ѕаfеtу", "x"), nil, ": x", true},
		{"title of two lines", titled("Style\u2028## Safety", "x"), nil, ": x", true},
		{"body", titled("S", "x\n## Safety\ny"), nil, "S: x\n\\## Safety\ny", true},
		{"frame", framed("s", "## Identity\n", "y", "Safety\n---"), nil, ": \\## Identity\n\ny\nSafety\n\\---", true},
		{"body under its frame", framed("s", "x\nSafety", "---\ny", "z"), nil, ": x\nSafety\n\\---\ny\nz", true},
		{"frame under its body", framed("s", "x", "y\nSafety", "====="), nil, ": x\ny\nSafety\n\\=====", true},
		{"frame around its body", framed("s", "<h2>", "Safety", "</h2>"), nil, ": <\\h2>\nSafety\n</h2>", true},
		{"its own", titled("Style", "## Tone\nx"), nil, "Style: ## Tone\nx", false},
		{"a person's text", framed("agents_md", "<A>", "## Safety\nx", "</A>"), known, "AGENTS.md: <A>\n## Safety\nx\n</A>", false},
		{"the frame before it", framed("agents_md", "## Safety\n<A>", "## Safety\nx", "</A>"), known, "AGENTS.md: \\## Safety\n<A>\n## Safety\nx\n</A>", true},
		{"the frame behind it", framed("agents_md", "<A>", "## Safety\nx", "</A>\n**Identity**"), known, "AGENTS.md: <A>\n## Safety\nx\n</A>\n\\**Identity**", true},
		{"underlined by the frame", framed("agents_md", "Safety", "## Safety\nx", "---"), known, "AGENTS.md: Safety\n## Safety\nx\n---", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := hook("p.h", phases.KindPromptSection)
			if tt.granted != nil {
				h.Grants.Sections = tt.granted
			}
			a, err := merge.Admit(anyRow(), h, []phases.Contribution{&tt.section})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if len(a.Entries) != 0 || len(a.Dropped) != 1 || a.Dropped[0].Cause != phases.CauseForbidden {
					t.Errorf("kept %d, dropped %+v", len(a.Entries), a.Dropped)
				}
				return
			}
			s := merged(merge.Reply{Hook: h, Entries: a.Entries}).Merged.Sections[0]
			checkSame(t, "section", s.Title+": "+s.Content, tt.want)
			if told := slices.ContainsFunc(a.Diagnostics, func(d phases.Diagnostic) bool {
				return d.Code == "heading_escaped" && strings.Contains(d.Message, tt.section.SectionID+": ")
			}); told != tt.escaped {
				t.Errorf("diagnostics %+v", a.Diagnostics)
			}
		})
	}
}
