package manifest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// fullManifest has something in every field.
func fullManifest() Manifest {
	m := sampleManifest(5, 3, 2)
	n := 7
	m.Epoch, m.TurnID = 2, `a"b\`
	m.Cache = Cache{Plan: CachePlan{Key: "k", Breakpoints: []Breakpoint{{After: AfterTools}, {After: AfterStable, SectionID: "section_0"}}}, Predicted: &n}
	m.Runs[0].Cut = []phases.Cut{{ContributionID: "c", SectionID: "s", Truncation: phases.Truncation{Limit: phases.LimitTotal, Original: 2, Kept: 1}}}
	m.Runs[1].Model, m.Runs[1].Usage = "small-1", phases.Usage{InputTokens: 300, OutputTokens: 20}
	m.Sections[1].Title = "quotes \" \\ \b\f\n\r\t\x01 Ü 🦈 </>&"
	m.Policies = append(m.Policies, phases.PolicyEntry{Domain: "d", Key: "k", Value: json.RawMessage(`{"a":[1,null,true,"x\n"],"b":{}}`), Owner: "o"})
	m.Budgets.Turn.UsedMS = 0.000001
	return m
}

func TestSealRecordIsSealAndCanonical(t *testing.T) {
	t.Parallel()

	for _, key := range []string{"", "key"} {
		var last *Link
		for range 2 {
			// A title that looks like the hash's place is only a title.
			a, b := fullManifest(), fullManifest()
			a.Sections[0].Title, b.Sections[0].Title = `,"hash":""`, `,"hash":""`
			record, err := SealRecord(nil, &a, last, []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			if err := Seal(&b, last, []byte(key)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(record.Data), mustCanonical(t, &b)); diff != "" {
				t.Errorf("record (-SealRecord +Seal):\n%s", diff)
			}
			if diff := cmp.Diff(record.Index, b.Index()); diff != "" {
				t.Errorf("index (-got +want):\n%s", diff)
			}
			l, ok := scanLink(record.Data, []byte(key))
			if diff := cmp.Diff(l.Index, b.Index()); diff != "" || !ok || l.prev != b.Prev || l.sum != b.Hash {
				t.Errorf("read off the bytes: %v, %+v (-got +want):\n%s", ok, l, diff)
			}
			link := a.Link()
			last = &link
		}
	}
	m := sampleManifest(1, 0, 0)
	m.Sections[0].Title = "\xff"
	if _, err := SealRecord(nil, &m, nil, nil); err == nil {
		t.Error("a title that is not UTF-8 was taken")
	}
}
