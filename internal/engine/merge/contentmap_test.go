package merge_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestContentMaps compiles what random dispatches brought: the spans of a section cover each of its characters once,
// and each is text that its owner brought.
func TestContentMaps(t *testing.T) {
	t.Parallel()

	spans := 0
	eachWorld(t, func(t *testing.T, rng *rand.Rand, w world) {
		replies := w.admit(t)
		got := merge.Merge(anyRow(), replies, w.state, w.limits)
		for i := range got.Merged.Sections {
			got.Merged.Sections[i].Placement = oneOf(rng, phases.PlacementSystem, phases.PlacementUserMessage)
		}
		host := oneOf(rng, "", "The host's own.", strings.Repeat("A long text of the host.\n", 9))
		contexts := append([]phases.ContextEntry(nil), got.Contexts...)
		for i := range contexts {
			contexts[i].Render = true
		}
		out, err := compiler.Compile(compiler.Input{
			Sections: got.Merged.Sections, Contexts: contexts, Host: compiler.HostTexts{DynamicContext: host, SoulCore: host}, KeepTexts: true,
			Limits: compiler.Limits{SectionChars: 90, FileChars: 90},
		})
		if err != nil {
			t.Fatal(err)
		}
		brought := wholeTexts(t, w)
		brought["p0 shared"] = append(brought["p0 shared"], chars(30)) // that of the turn's state
		for i := range out.Sections {
			spans += checkMap(t, &out.Sections[i], textOf(out, &out.Sections[i]), brought, host)
		}
	})
	if spans < 1000 {
		t.Errorf("only %d spans: the test does not test", spans)
	}
}

// wholeTexts are the contributions' texts as each is rendered alone and uncut, by plugin and id.
func wholeTexts(t *testing.T, w world) map[string][]string {
	t.Helper()

	texts := map[string][]string{}
	for i, h := range w.hooks {
		alone := hook(h.Subscription)
		alone.Grants = h.Grants
		r := from(t, alone, w.given[i]...)
		for _, e := range r.Entries {
			switch c := phases.CloneContribution(e.Value).(type) {
			case *phases.PromptSection:
				c.MaxChars = 0
				for _, s := range merged(from(t, alone, c)).Merged.Sections {
					texts[h.Plugin+" "+c.ContributionID] = append(texts[h.Plugin+" "+c.ContributionID], s.Content)
				}
			case *phases.PromptContext:
				c.MaxChars = 0
				for _, e := range merged(from(t, alone, c)).Contexts {
					texts[h.Plugin+" "+c.ContributionID] = append(texts[h.Plugin+" "+c.ContributionID], e.Content)
				}
			}
		}
	}
	return texts
}

func textOf(out compiler.Output, s *manifest.Section) string {
	for _, kept := range out.Texts {
		if kept.Hash == s.Hash {
			if s.Placement == phases.PlacementSystem {
				return strings.TrimPrefix(kept.Text, "## "+s.Title+"\n\n")
			}
			return kept.Text
		}
	}
	return ""
}

var builtinText = regexp.MustCompile(`^((\n?\[truncated: kept [0-9,]+ of [0-9,]+ characters\]\n?)?(\n\n)?)*(\(This is your file SOUL\.md\..*\))?$`)

// checkMap returns how many spans there are.
func checkMap(t *testing.T, s *manifest.Section, whole string, brought map[string][]string, host string) int {
	t.Helper()

	runes, at := []rune(whole), 0
	for _, span := range s.ContentMap {
		if span.Offset != at || span.Length <= 0 || at+span.Length > len(runes) {
			t.Fatalf("%s: a span from %d of %d characters, at %d of %d", s.SectionID, span.Offset, span.Length, at, len(runes))
		}
		piece := string(runes[at : at+span.Length])
		at += span.Length
		known := false
		switch {
		case span.Owner == phases.OwnerHost:
			known = strings.HasPrefix(host, piece)
		case span.Owner == phases.OwnerBuiltin && s.Owner == phases.OwnerBuiltin && len(s.ContentMap) == 1:
			known = true // a text of the compiler's
		case span.Owner == phases.OwnerBuiltin:
			known = builtinText.MatchString(piece)
		}
		for _, text := range brought[span.Owner+" "+span.ContributionID] {
			known = known || strings.Contains(text, piece)
		}
		if !known || (span.ContributionID == "") != (span.Owner == phases.OwnerHost || span.Owner == phases.OwnerBuiltin) {
			t.Errorf("%s: %s %q did not bring %q", s.SectionID, span.Owner, span.ContributionID, piece)
		}
	}
	if at != len(runes) || at != s.Chars {
		t.Errorf("%s: the spans cover %d of %d characters, and chars is %d", s.SectionID, at, len(runes), s.Chars)
	}
	return len(s.ContentMap)
}

// TestOriginalOfReportedCuts: what a plugin cut itself counts for the length before cuts, whatever cut it again.
func TestOriginalOfReportedCuts(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		kept, limit, want int
	}{
		"reported":           {100, 0, 1000},
		"and cut again":      {100, 60, 1000},
		"more than reported": {40, 0, 1060},
		"less than reported": {400, 0, 1000},
	} {
		c := capped("a", strings.Repeat("x", 100), tt.limit)
		c.Cut = &phases.SelfCut{Original: 1000, Kept: tt.kept}
		s := merged(from(t, hook("p.h"), c)).Merged.Sections[0]
		if s.OriginalChars != tt.want || s.Truncation == nil || s.Truncation.Original != s.OriginalChars {
			t.Errorf("%s: original_chars %d, want %d; truncation %+v", name, s.OriginalChars, tt.want, s.Truncation)
		}
	}
}
