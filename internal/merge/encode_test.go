package merge

import (
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// FuzzUsual compares the encoding without reflection with the encoders.
func FuzzUsual(f *testing.F) {
	f.Add("house.text#0", "", "house_rules", "Title", "stable", "system", "text\n\"\\\u2028", 0, 0, uint8(0))
	f.Add("", "d", "", "", "", "", "", 1<<60, -1<<53, uint8(1))
	f.Add("\xff", "memory", "s", "\x00", "x", "y", "é\x1f", -7, 9, uint8(6))
	f.Fuzz(func(t *testing.T, id, domain, section, title, stability, placement, content string, priority, maxChars int, others uint8) {
		common := phases.Common{ContributionID: id, Domain: domain, Priority: priority}
		s := &phases.PromptSection{
			Common: common, SectionID: section, Title: title, Content: content, MaxChars: maxChars,
			Stability: phases.Stability(stability), Placement: phases.Placement(placement),
		}
		c := &phases.PromptContext{Common: common, Content: content, MaxChars: maxChars}
		if others&1 != 0 {
			s.Frame, c.Render = &phases.Frame{Open: title}, new(bool)
		}
		if others&2 != 0 {
			s.SourceRefs = []phases.SourceRef{{ID: id}}
			c.SourceRefs = s.SourceRefs
		}
		if others&4 != 0 {
			s.SourceRefs, c.SourceRefs = []phases.SourceRef{}, []phases.SourceRef{}
		}
		for _, c := range []phases.Contribution{s, c, &phases.Noop{Common: common}} {
			got, ok := appendUsual([]byte("x"), c)
			want, err := encoders[phases.KindOf(c)]([]byte("x"), c)
			if ok && (err != nil || string(got) != string(want)) {
				t.Errorf("%T: %q, the encoder %q, %v", c, got, want, err)
			}
			if !ok && err == nil && others == 0 && phases.KindOf(c) != phases.KindNoop && max(priority, -priority, maxChars, -maxChars) < 1<<53 {
				t.Errorf("%T: not written without reflection: %q", c, want)
			}
		}
	})
}
