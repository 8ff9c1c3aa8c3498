package compiler

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()

	hook := func(ids ...string) (out []phases.MergedSection) {
		for _, id := range ids {
			out = append(out, phases.MergedSection{SectionID: id, Owner: "p", Content: "x"})
		}
		return out
	}
	tests := []struct {
		name string
		in   Input
		want string // empty: accepted
	}{
		{"rows for hooks", Input{Sections: hook("agents_md", "memory_recall", "skills_runtime")}, ""},
		{"profile", Input{Profile: "huge"}, "profile"},
		{"order", Input{Order: "random"}, "order"},
		{"two hooks", Input{Sections: hook("x", "x")}, `taken by plugin p`},
		{"hook and host", Input{Sections: hook("x"), Custom: []CustomSection{{SectionID: "x"}}}, "taken"},
		{"two of the host", Input{Custom: []CustomSection{{SectionID: "x"}, {SectionID: "x"}}}, "taken"},
		{"hook in our row", Input{Sections: hook("safety")}, "compiler's own"},
		{"host in a row for hooks", Input{Custom: []CustomSection{{SectionID: "agents_md"}}}, "compiler's own"},
		{"no id", Input{Custom: []CustomSection{{Text: "x"}}}, "not a name"},
		{"id of a group", Input{Sections: hook(sections.GroupDynamic)}, "not a name"},
		{"between two", Input{Custom: []CustomSection{{SectionID: "x", Before: "a", After: "b"}}}, "both before"},
		{"stability", Input{Custom: []CustomSection{{SectionID: "x", Stability: "solid"}}}, "stability"},
		{"placement", Input{Custom: []CustomSection{{SectionID: "x", Placement: "wall"}}}, "placement"},
		{"pace", Input{Custom: []CustomSection{{SectionID: "x", Pace: "slow"}}}, "pace"},
		{"two mistakes", Input{Profile: "huge", Custom: []CustomSection{{SectionID: "x"}, {SectionID: "x"}}}, "taken"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := Compile(tt.in)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Compile = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// inSession makes an output the previous prompt of the same session.
func inSession(out Output) *Previous {
	m := out.Manifest()
	return &Previous{Outline: m.Outline(), SameSession: true}
}

func TestUnstable(t *testing.T) {
	t.Parallel()

	rules := func(text string, key []byte, move bool, previous *Previous) Input {
		return Input{
			Sections:       []phases.MergedSection{{SectionID: "rules", Owner: "p", Stability: stable, Content: text}},
			FingerprintKey: key, MoveUnstable: move, Previous: previous,
		}
	}
	first := inSession(mustCompile(t, rules("one", nil, false, nil)))
	const heading, long = "## rules\n\n", "Ask before you delete a file. Ask before you send a letter. Ask before you buy a thing."
	moved := inSession(mustCompile(t, rules("two", nil, true, first)))
	other := *first
	other.SameSession = false
	tests := []struct {
		name          string
		in            Input
		wantStability phases.Stability
		wantReported  bool
	}{
		{"first prompt", rules("one", nil, true, nil), stable, false},
		{"unchanged", rules("one", nil, true, first), stable, false},
		{"changed", rules("two", nil, false, first), stable, true},
		{"changed under the same fingerprint", rules(digesttest.Collide(heading+long, 16)[len(heading):], nil, false, inSession(mustCompile(t, rules(long, nil, false, nil)))), stable, true},
		{"changed since another session", rules("two", nil, true, &other), stable, false},
		{"changed and moved", rules("two", nil, true, first), dynamic, true},
		{"stays moved", rules("two", nil, true, moved), dynamic, false},
		{"stays moved when it changes back", rules("one", nil, true, moved), dynamic, false},
		{"setting turned off", rules("two", nil, false, moved), stable, false},
		{"new key", rules("one", []byte("k"), true, first), stable, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			out := mustCompile(t, tt.in)
			checkOutput(t, &out)
			i := slices.IndexFunc(out.Sections, func(s manifest.Section) bool { return s.SectionID == "rules" })
			if got := out.Sections[i].Stability; got != tt.wantStability {
				t.Errorf("stability %s, want %s", got, tt.wantStability)
			}
			if inStable := strings.Contains(out.Prompt.StableText, "## rules"); inStable != (tt.wantStability == stable) {
				t.Errorf("in the stable text: %v", inStable)
			}
			reported := slices.ContainsFunc(out.Diagnostics, func(d phases.Diagnostic) bool {
				return d.Code == codeUnstable && d.Slot == "rules" && d.Plugin == "p"
			})
			if reported != tt.wantReported {
				t.Errorf("reported: %v, want %v (%v)", reported, tt.wantReported, out.Diagnostics)
			}
		})
	}
}

// TestOutputSharesNoMemory changes what went in and wants the output unmoved.
func TestOutputSharesNoMemory(t *testing.T) {
	t.Parallel()

	refs := []phases.SourceRef{{Kind: "file", ID: "a"}}
	cut := &phases.Truncation{Limit: phases.LimitSection, Original: 9, Kept: 1}
	schema := json.RawMessage(`{}`)
	in := Input{
		Sections: []phases.MergedSection{{SectionID: "x", Owner: "p", Content: "x", SourceRefs: refs, Truncation: cut, OriginalChars: 9}},
		Contexts: []phases.ContextEntry{{Content: "c", Render: true, SourceRefs: refs}},
		Custom:   []CustomSection{{SectionID: "y", Text: "y", SourceRefs: refs}},
		Tools:    []phases.MergedTool{{Name: "t", Definition: phases.Tool{InputSchema: schema}}},
	}
	out := mustCompile(t, in)
	before := asJSON(t, out) + string(out.Offered[0].Definition.InputSchema)
	refs[0].ID, cut.Kept, schema[0] = "changed", 5, ' '
	if diff := cmp.Diff(asJSON(t, out)+string(out.Offered[0].Definition.InputSchema), before); diff != "" {
		t.Errorf("the output changed with the input:\n%s", diff)
	}
}

// TestOriginalChars: trimming is no cut, and a cut keeps the length before it.
func TestOriginalChars(t *testing.T) {
	t.Parallel()

	cut := &phases.Truncation{Limit: phases.LimitTotal, Original: 40, Kept: 2}
	tests := []struct {
		name            string
		section         phases.MergedSection
		chars, original int
	}{
		{"as it is", phases.MergedSection{Content: "text", OriginalChars: 4}, 4, 4},
		{"blanks behind", phases.MergedSection{Content: "text\n\n", OriginalChars: 6}, 4, 4},
		{"cut", phases.MergedSection{Content: "te\n", OriginalChars: 40, Truncation: cut}, 2, 40},
		{"not told", phases.MergedSection{Content: "text"}, 4, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.section.SectionID, tt.section.Owner = "x", "p"
			out := mustCompile(t, Input{Profile: phases.ProfileMinimal, Sections: []phases.MergedSection{tt.section}})
			s := out.Sections[len(out.Sections)-1]
			if s.Chars != tt.chars || s.OriginalChars != tt.original {
				t.Errorf("%d of %d chars, want %d of %d", s.Chars, s.OriginalChars, tt.chars, tt.original)
			}
			if diff := cmp.Diff(s.Truncation, tt.section.Truncation); diff != "" {
				t.Errorf("truncation (-got +want):\n%s", diff)
			}
		})
	}
}

func TestCombine(t *testing.T) {
	t.Parallel()

	whole := phases.Truncation{Original: 100, Kept: 100}
	section := phases.Truncation{Limit: phases.LimitSection, Original: 50, Kept: 30}
	total := phases.Truncation{Limit: phases.LimitTotal, Original: 60, Kept: 40}
	plugin := phases.Truncation{Limit: phases.LimitPlugin, Original: 10, Kept: 5}
	tests := []struct {
		name  string
		parts []phases.Truncation
		want  phases.Truncation
	}{
		{"nothing cut", []phases.Truncation{whole, whole}, phases.Truncation{Original: 200, Kept: 200}},
		{"one cut", []phases.Truncation{whole, section}, phases.Truncation{Limit: phases.LimitSection, Original: 150, Kept: 130}},
		{"the larger loss", []phases.Truncation{plugin, total}, phases.Truncation{Limit: phases.LimitTotal, Original: 70, Kept: 45}},
		{"a tie", []phases.Truncation{total, section}, phases.Truncation{Limit: phases.LimitSection, Original: 110, Kept: 70}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(sections.Combine(tt.parts), tt.want); diff != "" {
				t.Errorf("combine (-got +want):\n%s", diff)
			}
		})
	}
}
