package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// fullManifest has something in every field.
func fullManifest() Manifest {
	m := sampleManifest(5, 3, 2)
	n := 7
	m.Epoch = 2
	m.Cache = Cache{Plan: CachePlan{Key: "k", Breakpoints: []Breakpoint{{After: AfterTools}, {After: AfterStable, SectionID: "section_0"}}}, Predicted: &n}
	m.Runs[0].Cut = []phases.Cut{{ContributionID: "c", SectionID: "s", Truncation: phases.Truncation{Limit: phases.LimitTotal, Original: 2, Kept: 1}}}
	m.Runs[1].Model, m.Runs[1].Usage = "small-1", phases.Usage{InputTokens: 300, OutputTokens: 20}
	m.Sections[1].Title = "quotes \" \\ \b\f\n\r\t\x01 Ü 🦈 </>&"
	m.Policies = append(m.Policies, phases.PolicyEntry{Domain: "d", Key: "k", Value: json.RawMessage(`{"a":[1,null,true,"x\n"],"b":{}}`), Owner: "o"})
	m.Budgets.Turn.UsedMS = 0.000001
	return m
}

func TestParseCanonicalRefuses(t *testing.T) {
	t.Parallel()

	m := fullManifest()
	data := mustCanonical(t, &m)
	tests := []struct{ name, old, replacement string }{
		{"blank", `"seq":`, `"seq": `},
		{"unknown field", `"seq":`, `"aaa":1,"seq":`},
		{"missing field", `"round":0,`, ``},
		{"field twice", `"round":0,`, `"round":0,"round":0,`},
		{"empty optional field", `"epoch":2`, `"epoch":0`},
		{"empty optional object", `"usage":{"input_tokens":300,"output_tokens":20}`, `"usage":{}`},
		{"number with exponent", `"granted_ms":1000`, `"granted_ms":1e3`},
		{"number with zeros", `"granted_ms":1000`, `"granted_ms":1000.0`},
		{"number with plus", `"seq":0`, `"seq":+0`},
		{"negative zero", `"granted_ms":1000`, `"granted_ms":-0`},
		{"negative seq", `"seq":0`, `"seq":-1`},
		{"escape that is not needed", `Section 2`, `\u0053ection 2`},
		{"escape in capitals", `\u0001`, `\u0001\u000F`},
		{"control character", `Section 2`, "Section\x02"},
		{"not UTF-8", `Section 2`, "Section\xff"},
		{"null list", `"omitted":[`, `"omitted":null,"x":[`},
		{"time in another form", `2026-02-03T04:05:06Z`, `2026-02-03T04:05:06.000Z`},
		{"no time", `2026-02-03T04:05:06Z`, `yesterday`},
		{"raw value not canonical", `{"a":[1,null`, `{"a":[1.0,null`},
		{"trailing comma", `"section_0","section_1"`, `"section_0",,"section_1"`},
		{"wrong type", `"round":0`, `"round":"0"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			changed := strings.Replace(data, tt.old, tt.replacement, 1)
			if changed == data {
				t.Fatal("nothing was changed")
			}
			if _, err := parseCanonical([]byte(changed), nil); err == nil {
				t.Error("taken")
			}
		})
	}
	for _, end := range []int{0, 1, 20, len(data) / 2, len(data) - 1} {
		if _, err := parseCanonical([]byte(data[:end]), nil); err == nil {
			t.Errorf("the first %d bytes were taken", end)
		}
	}
	if _, err := parseCanonical([]byte(data+" "), nil); err == nil {
		t.Error("something behind it was taken")
	}
	if m, err := parseCanonical([]byte(data), nil); err != nil || mustCanonical(t, m) != data {
		t.Errorf("the record itself: %v", err)
	}
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

func TestScanLinkRefuses(t *testing.T) {
	t.Parallel()

	m := sampleManifest(1, 1, 1)
	if err := Seal(&m, nil, nil); err != nil {
		t.Fatal(err)
	}
	good := mustCanonical(t, &m)
	tests := []struct{ name, data string }{
		{"empty", ""},
		{"list", "[]"},
		{"empty object", "{}"},
		{"no end", good[:len(good)-1]},
		{"something behind", good + "x"},
		{"two objects", good + good},
		{"hash twice", strings.Replace(good, `"hash":`, `"hash":"","hash":`, 1)},
		{"hash is a number", strings.Replace(good, `"hash":"`+m.Hash+`"`, `"hash":5`, 1)},
		{"no hash", strings.Replace(good, `"hash":"`+m.Hash+`",`, "", 1)},
		{"keys not in order", strings.Replace(good, `{"audits"`, `{"x":1,"audits"`, 1)},
		{"seq below 0", strings.Replace(good, `"seq":0`, `"seq":-1`, 1)},
		{"no time", strings.Replace(good, m.CreatedAt.Format("2006"), "year", 1)},
		{"key without value", `{"a"}`},
		{"unclosed", `{"a":"}`},
		{"unclosed escape", `{"a":"\"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if l, ok := scanLink([]byte(tt.data), nil); ok {
				t.Errorf("taken as %+v", l)
			}
		})
	}
	escaped := strings.Replace(good, `"turn_id":"turn-1"`, `"turn_id":"a\"b\\"`, 1)
	if l, ok := scanLink([]byte(escaped), nil); !ok || l.TurnID != `a"b\` {
		t.Errorf("escapes: %v, %q", ok, l.TurnID)
	}
}
