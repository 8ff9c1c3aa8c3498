package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
)

// TestCollidingTexts: a text that was replaced by another of the same fingerprint is another text for everything that
// compares, and is not accepted in the place of the first.
func TestCollidingTexts(t *testing.T) {
	t.Parallel()

	text := "## Section 0\n\n" + strings.Repeat("Ask before you delete a file. ", 4)
	other := digesttest.Collide(text, 16)
	record := func(text string) *Manifest {
		m := sampleManifest(2, 1, 1)
		s := &m.Sections[0]
		s.Fingerprint, s.Hash = Fingerprint(text, nil), Hash(text, nil)
		m.Audits, m.Requests, m.Reminders = nil, nil, nil
		return &m
	}
	a, b := record(text), record(other)
	if a.Sections[0].Fingerprint != b.Sections[0].Fingerprint {
		t.Fatal("the texts do not collide")
	}
	if d := Diff(a, b, nil, nil); d.Same || !slices.Equal(d.Sections.Changed, []string{"section_0"}) {
		t.Errorf("the difference is %+v", d.Sections)
	}
	was, is := a.Outline(), b.Outline()
	if broke := Compare(&was, &is, nil, nil); broke.BrokeAt != "section_0" {
		t.Errorf("blamed: %+v", broke)
	}
	for _, change := range []struct {
		name string
		kept map[string]bool
		bad  bool
	}{
		{"whole", map[string]bool{Hash(text, nil): true, Hash("1", nil): true}, false},
		{"another text under its hash", map[string]bool{Hash(text, nil): false, Hash("1", nil): true}, true},
		{"another text instead", map[string]bool{Hash(other, nil): true, Hash("1", nil): true}, true},
	} {
		m := record(text)
		m.TextsKept = true
		r, err := SealRecord(nil, m, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := NewVerifier(VerifyOptions{Texts: []string{text}})
		v.Begin(m.WorkspaceID, m.ThreadID, nil, change.kept)
		v.Add(v.Inspect(r))
		got, err := v.Verdict()
		problems := slices.DeleteFunc(got.Problems, func(p Problem) bool { return p.Reason == BadMissing }) // there is no sign-off
		if (len(problems) > 0) != change.bad || err != nil {
			t.Errorf("%s: %+v, %v", change.name, problems, err)
		}
	}
	v := NewVerifier(VerifyOptions{Texts: []string{other}})
	r, err := SealRecord(nil, a, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v.Begin(a.WorkspaceID, a.ThreadID, nil, nil)
	v.Add(v.Inspect(r))
	if got, _ := v.Verdict(); !slices.ContainsFunc(got.Problems, func(p Problem) bool { return p.Reason == BadFingerprint }) {
		t.Errorf("the other text passes for the one of the record: %+v", got.Problems)
	}
}
