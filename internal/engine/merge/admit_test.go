package merge_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// grants is a hook with these grants and all declared kinds.
func grants(g phases.Grants) *merge.Hook {
	h := hook("p.h", phases.Kinds()...)
	h.Grants = &g
	return h
}

func section(id, content string) *phases.PromptSection {
	return &phases.PromptSection{SectionID: id, Content: content}
}

func stable(id string) *phases.PromptSection {
	return &phases.PromptSection{SectionID: id, Content: "x", Stability: phases.StabilityStable}
}

func bundle(id string, tools ...string) *phases.ToolBundle {
	b := &phases.ToolBundle{BundleID: id}
	for _, name := range tools {
		b.Tools = append(b.Tools, phases.Tool{Name: name})
	}
	return b
}

func policy(domain, key, value string) *phases.Policy {
	return &phases.Policy{Common: phases.Common{Domain: domain}, Key: key, Value: json.RawMessage(value)}
}

func TestAdmitGrants(t *testing.T) {
	t.Parallel()

	sections := []string{string(phases.KindPromptSection)}
	all := []string{"*"}
	inDomain := &phases.Noop{Common: phases.Common{Domain: "memory"}}
	tests := []struct {
		name   string
		grants phases.Grants
		give   phases.Contribution
		slot   string // of the drop; "-" means admitted
	}{
		{"kind granted", phases.Grants{Contribute: []string{"reminder"}}, &phases.Reminder{Type: "t"}, "-"},
		{"kind missing", phases.Grants{Contribute: sections}, &phases.Reminder{Type: "t"}, ""},
		{"noop needs none", phases.Grants{}, &phases.Noop{}, "-"},
		{"manifest diagnostic needs none", phases.Grants{}, &phases.ManifestDiagnostic{Code: "c"}, "-"},
		{"audit needs one", phases.Grants{}, &phases.Audit{EventKind: "e"}, ""},
		{"domain missing", phases.Grants{}, inDomain, ""},
		{"domain granted", phases.Grants{Domains: []string{"mem*"}}, inDomain, "-"},
		{"section missing", phases.Grants{Contribute: sections}, section("notes", "x"), "notes"},
		{"section by join", phases.Grants{Contribute: sections, Join: []string{"notes"}}, section("notes", "x"), "-"},
		{"stable without its grant", phases.Grants{Contribute: sections, Sections: all}, stable("notes"), "notes"},
		{"house row", phases.Grants{Contribute: sections, Sections: []string{"*", "identity"}, Join: []string{"identity"}}, section("identity", "x"), "identity"},
		{"house row stable", phases.Grants{Contribute: sections, StableSections: []string{"safety"}}, stable("safety"), "safety"},
		{"known row by wildcard", phases.Grants{Contribute: sections, Sections: all, StableSections: all, Join: all}, section("agents_md", "x"), "agents_md"},
		{"known row by name", phases.Grants{Contribute: sections, Sections: []string{"skills_runtime"}}, section("skills_runtime", "x"), "-"},
		{"known row keeps its stability", phases.Grants{Contribute: sections, Sections: []string{"agents_md"}}, stable("agents_md"), "-"},
		{"policy missing", phases.Grants{Contribute: all, Domains: all, Policies: []string{"memory/a"}}, policy("memory", "b", "1"), "memory/b"},
		{"policy granted, domain not", phases.Grants{Contribute: all, Policies: []string{"memory/*"}}, policy("memory", "b", "1"), "-"},
		{"one tool missing", phases.Grants{Contribute: all, Tools: []string{"a"}}, bundle("b", "a", "c"), "c"},
		{"tools granted", phases.Grants{Contribute: all, Tools: []string{"a", "c"}}, bundle("b", "a", "c"), "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			sibling := &phases.Noop{}
			h, both := grants(tt.grants), []phases.Contribution{tt.give, sibling}
			got, err := merge.Admit(anyRow(), h, both)
			checkOwned(t, h, both, got, err)
			if err != nil {
				t.Fatal(err)
			}
			if tt.slot == "-" {
				if len(got.Entries) != 2 || len(got.Dropped)+len(got.Diagnostics) != 0 {
					t.Fatalf("got %+v, want it admitted", got)
				}
				return
			}
			if len(got.Entries) != 1 || phases.KindOf(got.Entries[0].Value) != phases.KindNoop || len(got.Dropped) != 1 {
				t.Fatalf("got %+v, want only the sibling", got)
			}
			want := merge.Drop{
				ContributionID: "p.h#0", Slot: tt.slot, Kind: phases.KindOf(tt.give), Cause: phases.CauseForbidden,
				Message: got.Dropped[0].Message, Chars: got.Dropped[0].Chars,
			}
			checkSame(t, "drop", got.Dropped[0], want)
			d := got.Diagnostics[0]
			if d.Code != "forbidden" || d.Slot != tt.slot || d.Subscription != "p.h" || !strings.Contains(d.Message, "plugin p may not") {
				t.Errorf("diagnostic %+v does not say who may not do what", d)
			}
		})
	}
}

func TestAdmitKinds(t *testing.T) {
	t.Parallel()

	h := hook("p.h", phases.KindReminder, phases.KindPolicy)
	h.Visibility = phases.VisibilityDebug
	got, err := merge.Admit(rowOf(t, phases.PrePromptCompile), h, []phases.Contribution{
		&phases.Policy{Common: own("no id", 0)}, // not in the row, and not even well formed
		section("notes", "Grüße"),               // in the row, not declared
		&phases.Reminder{Type: "hello"},         // fine
		&phases.Noop{},                          // always
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != 2 {
		t.Errorf("entries = %+v, want reminder and noop", got.Entries)
	}
	want := []phases.Diagnostic{
		{
			Code: "contribution_not_allowed", Severity: phases.SeverityWarning, Plugin: "p", Subscription: "p.h", Visibility: phases.VisibilityDebug,
			Message: "hook h: phase turn.pre_prompt_compile does not take policy", Detail: `hook h: phase turn.pre_prompt_compile does not take policy: its id was "no id"`,
		},
		{
			Code: "contribution_not_allowed", Severity: phases.SeverityWarning, Plugin: "p", Subscription: "p.h", Visibility: phases.VisibilityDebug,
			Message: "hook h: does not declare prompt_section, which it sent in phase turn.pre_prompt_compile",
		},
	}
	checkSame(t, "diagnostics", got.Diagnostics, want)
	if d := got.Dropped[1]; d.Chars != 5 || d.ContributionID != "p.h#1" {
		t.Errorf("drop = %+v, want its length and id", d)
	}
	omitted := got.Dropped[1].Omitted(h)
	checkSame(t, "omitted", omitted, phases.Omitted{ID: "p.h#1", Owner: "p", Reason: "contribution_not_allowed", Chars: 5})
}

func TestAdmitInvalid(t *testing.T) {
	t.Parallel()

	deep := strings.Repeat("[", 33) + strings.Repeat("]", 33)
	rewrite := func(path string) phases.Contribution { return &phases.Rewrite{Path: path, Value: json.RawMessage("1")} }
	tests := []struct {
		name string
		give []phases.Contribution
		says string
	}{
		{"too many", slices.Repeat([]phases.Contribution{&phases.Noop{}}, 257), "257 contributions; at most 256"},
		{"typed nil", []phases.Contribution{(*phases.Noop)(nil)}, "contribution 0 is empty"},
		{"not UTF-8", []phases.Contribution{section("a", "\xff")}, "contribution 0: prompt_section: content is not valid UTF-8"},
		{"NUL", []phases.Contribution{section("a", "\x00")}, "content holds a NUL"},
		{"deep JSON", []phases.Contribution{policy("d", "k", deep)}, "nested deeper than 32"},
		{"lone surrogate", []phases.Contribution{policy("d", "k", `"\ud800"`)}, "contribution 0: policy"},
		{"one of several", []phases.Contribution{&phases.Noop{}, section("", "x")}, "contribution 1"},
		{"pointer escape", []phases.Contribution{rewrite("/a~2")}, "~ must be followed by 0 or 1"},
		{"pointer depth", []phases.Contribution{rewrite(strings.Repeat("/a", 33))}, "deeper than 32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := hook("p.h", phases.Kinds()...)
			got, err := merge.Admit(anyRow(), h, tt.give)
			if tt.name != "typed nil" {
				checkOwned(t, h, tt.give, got, err)
			}
			if phases.CodeOf(err) != phases.CauseInvalidReply || !strings.Contains(phases.Whole(err), tt.says) || !strings.Contains(fmt.Sprint(err), "p.h") {
				t.Errorf("error = %v, want invalid_reply of p.h with %q", err, tt.says)
			}
			if got.Entries != nil || got.Dropped != nil {
				t.Errorf("got %+v beside the error", got)
			}
		})
	}
}

func TestAdmitNamesAndHashes(t *testing.T) {
	t.Parallel()

	noted := section("a", "x")
	noted.Diagnostics = []phases.Diagnostic{{Code: "c", Plugin: "another", Message: "m"}}
	given := []phases.Contribution{noted, &phases.Noop{Common: own("mine", 0)}, section("a", "x")}
	h := hook("p.h", phases.Kinds()...)
	got, err := merge.Admit(anyRow(), h, given)
	checkOwned(t, h, given, got, err)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range got.Entries {
		ids = append(ids, e.Value.Head().ContributionID)
	}
	checkSame(t, "ids", ids, []string{"p.h#0", "mine", "p.h#2"})
	if d := got.Diagnostics; len(d) != 1 || d[0].Plugin != "p" || d[0].Subscription != "p.h" {
		t.Errorf("remarks %+v", d)
	}
	if given[0].Head().ContributionID != "" {
		t.Error("Admit changed what it was given")
	}
	checkSame(t, "hashes", got.Hashes(), []string{got.Entries[0].Hash, got.Entries[1].Hash, got.Entries[2].Hash})
}

// TestSize: an entry with a long text holds it twice, as JSON and as text.
func TestSize(t *testing.T) {
	t.Parallel()

	const size = 1 << 20
	got, err := merge.Admit(anyRow(), hook("p.h", phases.Kinds()...), []phases.Contribution{section("a", strings.Repeat("x", size))})
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Entries[0].Size(); n < 2*size || n > 2*size+1024 {
		t.Errorf("an entry of %d characters weighs %d bytes", size, n)
	}
}

// TestAdmitHashesEveryKind compares with the slow way: the JSON of phases with
// its kind, made canonical.
func TestAdmitHashesEveryKind(t *testing.T) {
	t.Parallel()

	no := false
	head := phases.Common{ContributionID: "id", Domain: "d", Priority: 3}
	all := phases.Contributions{
		&phases.Policy{Common: head, Key: "k", Value: json.RawMessage(`{"b":1,"a":2.50}`)},
		&phases.PromptContext{Common: head, Content: "c\n", MaxChars: 4, SourceRefs: []phases.SourceRef{{Kind: "file"}}, Render: &no},
		&phases.PromptSection{Common: head, SectionID: "s", Content: "é", Frame: &phases.Frame{Open: "<"}, Cut: &phases.SelfCut{Original: 2, Kept: 1}},
		&phases.ToolBundle{Common: head, BundleID: "b", Tools: []phases.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type": "object", "properties": {}}`)}}},
		&phases.Decision{Common: head, Verdict: phases.VerdictAsk, Reason: "r"},
		&phases.Rewrite{Common: head, Path: "/a", Value: json.RawMessage(`null`)},
		&phases.Reminder{Common: head, Type: "t", Attributes: map[string]string{"b": "1", "a": "2"}, Text: "x"},
		&phases.ManifestDiagnostic{Common: head, Code: "c", Severity: phases.SeverityError},
		&phases.Audit{Common: head, EventKind: "e", Details: json.RawMessage(`[1, 2]`)},
		&phases.BackgroundJob{Common: head, JobKind: "j", IdempotencyKey: "k"},
		&phases.Noop{Common: head},
	}
	if len(all) != len(phases.Kinds()) {
		t.Fatalf("%d kinds in the test, %d in phases", len(all), len(phases.Kinds()))
	}
	got, err := merge.Admit(anyRow(), hook("p.h", phases.Kinds()...), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		list, err := json.Marshal(all[i : i+1])
		if err != nil {
			t.Fatal(err)
		}
		want, err := digest.JSON(nil, list[1:len(list)-1])
		if err != nil {
			t.Fatal(err)
		}
		if got.Entries[i].Hash != digest.SHA256(want) {
			t.Errorf("%s: hash is not that of %s", phases.KindOf(c), want)
		}
	}
}

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
