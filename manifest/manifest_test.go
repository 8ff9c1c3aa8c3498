package manifest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

func TestValidate(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(m *Manifest)
		want   string // part of the error; empty: none
	}{
		{"sample", func(*Manifest) {}, ""},
		{"other schema", func(m *Manifest) { m.SchemaVersion = 2 }, "schema_version"},
		{"short id", func(m *Manifest) { m.ManifestID = "01JZ" }, "manifest_id"},
		{"id beyond 128 bits", func(m *Manifest) { m.ManifestID = "8" + strings.Repeat("0", 25) }, "manifest_id"},
		{"round below 0", func(m *Manifest) { m.Round = -1 }, "round"},
		{"no compiler", func(m *Manifest) { m.CompilerVersion = "" }, "compiler_version"},
		{"profile", func(m *Manifest) { m.Profile = "" }, "profile"},
		{"no time", func(m *Manifest) { m.CreatedAt = time.Time{} }, "created_at"},
		{"second record without prev", func(m *Manifest) { m.Seq, m.Hash = 1, Fingerprint("", []byte("k")) }, "prev"},
		{"fingerprint", func(m *Manifest) { m.FingerprintFull = "xxh64:12" }, "fingerprint_full"},
		{"keyed fingerprint", func(m *Manifest) { m.FingerprintFull = Fingerprint("", []byte("k")) }, ""},
		{"xxh64 is no record hash", func(m *Manifest) { m.ContentHash = Fingerprint("", nil) }, "content_hash"},
		{"request's record", func(m *Manifest) { m.Requests[0].ManifestID = "x" }, `requests[0]: manifest_id: "x" is not a ULID`},
		{"request's change", func(m *Manifest) { m.Requests[0].Changes[0].Kind = "colour" }, `requests[0]: changes[0]: the kind "colour" is unknown`},
		{"request's omissions", func(m *Manifest) { m.Requests[0].Omitted = -1 }, "requests[0]: omitted"},
		{"section id", func(m *Manifest) { m.Sections[1].SectionID, m.SectionIDs[1] = "a b", "a b" }, "sections[1]"},
		{"section twice", func(m *Manifest) { m.Sections[1].SectionID, m.SectionIDs[1] = "section_0", "section_0" }, "twice"},
		{"no owner", func(m *Manifest) { m.Sections[1].Owner = "" }, "owner"},
		{"position", func(m *Manifest) { m.Sections[1].Position = 5 }, "position is 5"},
		{"stability", func(m *Manifest) { m.Sections[1].Stability = "solid" }, "stability"},
		{"placement", func(m *Manifest) { m.Sections[1].Placement = "" }, "placement"},
		{"section hash", func(m *Manifest) { m.Sections[1].Hash = m.Sections[1].Fingerprint }, "hash"},
		{"prompt hash", func(m *Manifest) { m.HashFull = m.FingerprintFull }, "hash_full"},
		{"empty section", func(m *Manifest) { m.Sections[1].Chars = 0 }, "no text"},
		{"tokens of nobody", func(m *Manifest) { m.Sections[1].Tokenizer = "" }, "tokenizer"},
		{"grown by a cut", func(m *Manifest) { m.Sections[0].Truncation.Kept = 1000 }, "truncation"},
		{"no source_refs", func(m *Manifest) { m.Sections[1].SourceRefs = nil }, "source_refs"},
		{"section_ids", func(m *Manifest) { m.SectionIDs = m.SectionIDs[:1] }, "section_ids"},
		{"a prediction", func(m *Manifest) { m.Cache.Predicted, m.Cache.Actual = new(10), new(12) }, ""},
		{"a prediction below 0", func(m *Manifest) { m.Cache.Predicted = new(-1) }, "cache.predicted"},
		{"a report below 0", func(m *Manifest) { m.Cache.Actual = new(-1) }, "cache.actual"},
		{"a cause", func(m *Manifest) { m.Cache.Cause = causeTools }, ""},
		{"an unknown cause", func(m *Manifest) { m.Cache.Cause = "moon" }, "cache: the cause"},
		{"an unknown breakpoint", func(m *Manifest) { m.Cache.Plan.Breakpoints = []Breakpoint{{After: "lunch"}} }, "breakpoints[0]"},
		{"nil list", func(m *Manifest) { m.Files = nil }, "files: is null"},
		{"nil list in a run", func(m *Manifest) { m.Runs[0].Cut = nil }, "runs[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			m := sampleManifest(2, 1, 1)
			tt.change(&m)
			err := Validate(&m)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestCompleteLeavesSharedRowsAlone(t *testing.T) {
	t.Parallel()

	runs := []phases.Run{{Subscription: "a.b"}}
	sections := []Section{{SectionID: "x"}}
	m := Manifest{Runs: runs, Sections: sections}
	m.CreatedAt = time.Date(2026, 1, 1, 1, 0, 0, 0, time.FixedZone("east", 3600))
	m.Complete()
	if runs[0].Cut != nil || sections[0].SourceRefs != nil {
		t.Error("Complete wrote into rows that it was lent")
	}
	if m.Runs[0].Cut == nil || m.Runs[0].Contributions == nil || m.Sections[0].SourceRefs == nil || m.Tools == nil {
		t.Error("lists are still nil")
	}
	if diff := cmp.Diff(m.SectionIDs, []string{"x"}); diff != "" {
		t.Errorf("section_ids (-got +want):\n%s", diff)
	}
	if got := m.CreatedAt.Format(time.RFC3339); got != "2026-01-01T00:00:00Z" || m.Profile != phases.ProfileFull {
		t.Errorf("created_at %s, profile %q", got, m.Profile)
	}
	if strings.Contains(mustCanonical(t, &m), "null") && !strings.Contains(mustCanonical(t, &m), `"truncation":null`) {
		t.Error("a list is null in JSON")
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()

	m := sampleManifest(1, 0, 0)
	m.Diagnostics = nil
	m.Diagnose([]phases.Diagnostic{
		{Code: "conflict", Severity: phases.SeverityWarning, Message: "x belongs to c.d", Subscription: "a.b", Slot: "memory/mode"},
		{Code: "file_truncated", Message: "neutral", Detail: "fine", SafeForUser: true, Visibility: phases.VisibilityUserAudit, Slot: "section_0"},
		{Code: "fail_open", Message: "neutral", Detail: "secret", SafeForUser: true, Visibility: phases.VisibilityDebug, Cause: phases.CauseCrash},
		{Code: "omitted", Severity: phases.SeverityError, Slot: "memory_recall"},
	})
	want := []Diagnostic{
		{Code: "conflict", Severity: phases.SeverityWarning, Message: "x belongs to c.d", HookSource: "a.b"},
		{Code: "file_truncated", Severity: phases.SeverityInfo, Message: "fine", SectionID: "section_0"},
		{Code: "fail_open", Severity: phases.SeverityInfo, Message: "neutral", Cause: phases.CauseCrash},
		{Code: "omitted", Severity: phases.SeverityError, SectionID: "memory_recall"},
	}
	if diff := cmp.Diff(m.Diagnostics, want); diff != "" {
		t.Errorf("diagnostics (-got +want):\n%s", diff)
	}
}

func TestHashLabels(t *testing.T) {
	t.Parallel()

	const secret = "Zanzibar"
	m := sampleManifest(2, 2, 2)
	m.Sections[0].Title = secret
	m.Sections[0].SourceRefs = []phases.SourceRef{
		{Kind: "file", ID: secret, Label: secret}, {Kind: "url", ID: secret}, {Kind: "document", ID: "doc-1", Label: secret},
	}
	m.Omitted = append(m.Omitted, phases.Omitted{ID: "x", Reason: "because of " + secret})
	m.Plugins[0].Message = secret
	m.Plugins[0].AbsentPaths = []string{secret}
	m.Files[0].Path = secret
	m.Requests[0].Changes = []RequestChange{{Kind: RequestMedia, ID: secret}}
	m.Diagnostics[0].Message = secret
	for _, v := range []string{`"Zanzibar"`, ` {"place":"Zanzibar"}`, `["Zanzibar"]`, `true`, `5`, `null`} {
		m.Policies = append(m.Policies, phases.PolicyEntry{Value: json.RawMessage(v)})
	}
	key := []byte("k")
	before := mustCanonical(t, &m)
	hashed := HashLabels(m, key)
	if diff := cmp.Diff(before, mustCanonical(t, &m)); diff != "" {
		t.Errorf("HashLabels changed its argument:\n%s", diff)
	}
	after := mustCanonical(t, &hashed)
	if strings.Contains(after, secret) {
		t.Errorf("text is still there: %s", after)
	}
	for _, kept := range []string{`"doc-1"`, `"reason":"profile"`, `"value":true`, `"value":5`, `"section_id":"section_1"`, Hash(secret, key)} {
		if !strings.Contains(after, kept) {
			t.Errorf("%s is missing", kept)
		}
	}
	if err := Validate(&hashed); err != nil {
		t.Error(err)
	}
	again := HashLabels(hashed, []byte("other key"))
	if diff := cmp.Diff(after, mustCanonical(t, &again)); diff != "" {
		t.Errorf("hashing twice is not hashing once (-once +twice):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()

	m := sampleManifest(3, 2, 1)
	n := 5
	m.Cache.Actual = &n
	if err := Seal(&m, nil, nil); err != nil {
		t.Fatal(err)
	}
	record := mustCanonical(t, &m)
	tests := []struct {
		name, data, want string
	}{
		{"canonical", record, ""},
		{"with blanks", " " + record + "\n", ""},
		{"unknown field", strings.Replace(record, `"seq"`, `"extra":1,"seq"`, 1), "extra"},
		{"field twice", strings.Replace(record, `"seq"`, `"seq":7,"seq"`, 1), `the name "seq" is there twice`},
		{"field in another case", strings.Replace(record, `"seq"`, `"Seq"`, 1), `"Seq" must be written "seq"`},
		{"lone surrogate", strings.Replace(record, `"compiler_version":"`, `"compiler_version":"\ud800`, 1), "surrogate"},
		{"second record", record + record, "more than one JSON value"},
		{"rest", record + "x", "more than one JSON value"},
		{"not valid", strings.Replace(record, `"round":0`, `"round":-1`, 1), "round"},
		{"too deep", strings.Repeat("[", 100), "deep"},
		{"empty", "", "EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := Parse([]byte(tt.data))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Parse = %v, want %q in it", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, m); diff != "" {
				t.Errorf("record (-got +want):\n%s", diff)
			}
		})
	}
}

// FuzzParse: what Parse takes is what encoding/json reads, and comes back the same from its canonical form.
func FuzzParse(f *testing.F) {
	for _, m := range []Manifest{sampleManifest(0, 0, 0), sampleManifest(2, 1, 1)} {
		f.Add([]byte(mustCanonical(f, &m)))
	}
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		var want Manifest
		if err := jsonscan.Decode(data, &want); err != nil {
			t.Fatalf("encoding/json does not take it: %v", err)
		}
		if diff := cmp.Diff(m, want); diff != "" {
			t.Errorf("record beside encoding/json's (-got +want):\n%s", diff)
		}
		b, err := Canonical(&m)
		if err != nil {
			return // an embedded policy value that is no canonical JSON
		}
		again, err := Parse(b)
		if err != nil {
			t.Fatalf("not taken back: %v", err)
		}
		if diff := cmp.Diff(mustCanonical(t, &again), string(b)); diff != "" {
			t.Errorf("round trip (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(HashLabels(again, nil).SectionIDs, m.SectionIDs); diff != "" {
			t.Errorf("labels (-got +want):\n%s", diff)
		}
	})
}
