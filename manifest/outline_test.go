package manifest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// busyOutline has every field set.
func busyOutline() Outline {
	m := sampleManifest(14, 20, 6)
	m.Seq, m.Round, m.Epoch, m.Mode, m.Build, m.ConfigHash = 7, 2, 3, "plan", "v1.2.3", Fingerprint("config", nil)
	m.FingerprintKeyID = "k"
	m.Cache.Provider, m.Cache.Model, m.Cache.ToolTokens = "anthropic", "claude", 900
	m.Cache.Plan = CachePlan{Key: m.FingerprintStable, Breakpoints: []Breakpoint{{After: AfterTools}, {After: AfterStable, SectionID: "section_3"}}}
	for i := range m.Sections {
		m.Sections[i].ContentMap = []Span{
			{Length: 40, Owner: "plugin-" + string(rune('0'+i%6)), ContributionID: "plugin-" + string(rune('0'+i%6)) + ".hook#0"},
			{Offset: 40, Length: 2, Owner: phases.OwnerBuiltin},
			{Offset: 42, Length: 58 + i, Owner: phases.OwnerHost},
		}
	}
	return m.Outline()
}

// TestOutlineRoundTrip: an outline comes back as it was, and its parts cut off are an error.
func TestOutlineRoundTrip(t *testing.T) {
	t.Parallel()

	for name, o := range map[string]Outline{"busy": busyOutline(), "empty": {CreatedAt: time.Time{}.UTC()}, "no list": {Sections: []OutlineSection{{Tokens: -1}}}} {
		data := o.Append(nil)
		got, err := ParseOutline(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(o, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for n := range data {
			if _, err := ParseOutline(data[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are an outline", name, n, len(data))
			}
		}
	}
	busy := busyOutline()
	data := busy.Append(nil)
	if o := busyOutline(); string(o.Append(nil)) != string(data) {
		t.Error("equal outlines have different encodings")
	}
	if _, err := ParseOutline(append(data, 0)); err == nil {
		t.Error("an outline with something behind it was read")
	}
	if record, err := Canonical(new(sampleManifest(14, 20, 6))); err != nil || len(data)*10 > len(record) {
		t.Errorf("an outline has %d bytes, its record %d (%v)", len(data), len(record), err)
	}
	for i := range data {
		data[i] = 0xff
	}
	if diff := cmp.Diff(busyOutline(), busy); diff != "" {
		t.Errorf("the outline refers to its encoding:\n%s", diff)
	}
}

func FuzzParseOutline(f *testing.F) {
	busy := busyOutline()
	f.Add(busy.Append(nil))
	f.Add([]byte{outlineForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := ParseOutline(data)
		if err != nil {
			return
		}
		again, err := ParseOutline(o.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o, again); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
