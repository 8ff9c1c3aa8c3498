package compiler

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// office is a plugin's tools, two of them in one domain and one in another.
func office() []phases.MergedTool {
	tool := func(name, domain string) phases.MergedTool {
		return phases.MergedTool{Name: name, BundleID: "b", Owner: "p", Hash: "h-" + name, Definition: phases.Tool{Name: name, HiddenDomain: domain}}
	}
	return []phases.MergedTool{tool("send_mail", "mail"), tool("read_file", ""), tool("list_mail", "mail"), tool("add_event", "calendar")}
}

// TestHiddenTools: what is hidden is listed and not offered, and request_tools is
// offered where a model can read what to ask for.
func TestHiddenTools(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		in   Input
		// offered are the tools of the request, hidden the rows that are not in it.
		offered, hidden string
		// section is the list in the prompt.
		section string
		left    []string
	}{
		{"no tools", Input{ToolCalling: true}, "", "", "", nil},
		{
			"nothing asked for",
			Input{ToolCalling: true},
			"read_file request_tools", "add_event/calendar list_mail/mail send_mail/mail",
			"- calendar: add_event\n- mail: list_mail, send_mail", nil,
		},
		{
			"one asked for",
			Input{ToolCalling: true, RequestedDomains: []string{"mail"}},
			"list_mail read_file request_tools send_mail",
			"add_event/calendar", "- calendar: add_event", nil,
		},
		{
			"all asked for",
			Input{ToolCalling: true, RequestedDomains: []string{"calendar", "mail", "none"}},
			"add_event list_mail read_file send_mail",
			"", "", nil,
		},
		{
			"no tool calling",
			Input{},
			"read_file", "add_event/calendar list_mail/mail send_mail/mail", "",
			[]string{"hidden_tool_domains filtered", "request_tools filtered"},
		},
		{
			"a small profile",
			Input{ToolCalling: true, Profile: phases.ProfileMinimal},
			"read_file", "add_event/calendar list_mail/mail send_mail/mail", "",
			[]string{"hidden_tool_domains profile", "request_tools profile"},
		},
		{
			"a small profile that was asked",
			Input{ToolCalling: true, Profile: phases.ProfileMinimal, RequestedDomains: []string{"mail"}},
			"list_mail read_file send_mail", "add_event/calendar", "",
			[]string{"hidden_tool_domains profile", "request_tools profile"},
		},
		{
			"no room for the list",
			Input{ToolCalling: true, Limits: Limits{SectionChars: 1}},
			"read_file", "add_event/calendar list_mail/mail send_mail/mail", "",
			[]string{"hidden_tool_domains budget", "request_tools budget"},
		},
		{
			"the host has the name",
			Input{ToolCalling: true, ExistingTools: []string{"shell", "request_tools"}},
			"read_file",
			"add_event/calendar list_mail/mail send_mail/mail", "- calendar: add_event\n- mail: list_mail, send_mail",
			[]string{"request_tools conflict"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if tt.offered != "" {
				tt.in.Tools = office()
			}
			out := mustCompile(t, tt.in)
			var offered, hidden, left []string
			for _, o := range out.Offered {
				offered = append(offered, o.Name)
			}
			for _, row := range out.Tools {
				if row.HiddenDomain != "" {
					hidden = append(hidden, row.Name+"/"+row.HiddenDomain)
				} else if !slices.Contains(offered, row.Name) {
					t.Errorf("%s is neither offered nor hidden", row.Name)
				}
			}
			for _, l := range out.Omitted {
				if l.ID == sections.HiddenToolDomains || l.ID == phases.RequestTools {
					left = append(left, l.ID+" "+l.Reason)
				}
			}
			got := []string{strings.Join(offered, " "), strings.Join(hidden, " "), strings.TrimPrefix(sectionText(&out, sections.HiddenToolDomains), hiddenIntro+"\n\n")}
			if diff := cmp.Diff(append(got, left...), append([]string{tt.offered, tt.hidden, tt.section}, tt.left...)); diff != "" {
				t.Errorf("offered, hidden, section, omitted (-got +want):\n%s", diff)
			}
		})
	}
}

// sectionText is the text of a section of the dynamic part; "" without it.
func sectionText(out *Output, id string) string {
	for _, s := range out.Sections {
		if s.SectionID == id {
			_, text, _ := strings.Cut(out.Prompt.DynamicText, "## "+s.Title+join)
			text, _, _ = strings.Cut(text, join+"## ")
			return text
		}
	}
	return ""
}

// TestRequestTools: the definition is what its schema and the manifest say of it.
func TestRequestTools(t *testing.T) {
	t.Parallel()

	def := RequestTools()
	canonical, err := digest.JSON(nil, def.InputSchema)
	if err != nil || string(canonical) != string(def.InputSchema) {
		t.Errorf("schema %s is not canonical: %s, %v", def.InputSchema, canonical, err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(def.InputSchema, &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]bool{`{"domains":["mail"]}`: true, `{"domains":[]}`: false, `{}`: false, `{"domains":"mail"}`: false} {
		var v any
		if err := json.Unmarshal([]byte(args), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != want {
			t.Errorf("arguments %s: %v", args, err)
		}
	}
	out := mustCompile(t, Input{Tools: office(), ToolCalling: true})
	i := slices.IndexFunc(out.Tools, func(row manifest.Tool) bool { return row.Name == phases.RequestTools })
	whole, err := digest.EncoderOf[phases.Tool]().Append(nil, &def)
	if err != nil {
		t.Fatal(err)
	}
	want := manifest.Tool{Name: phases.RequestTools, Owner: phases.OwnerBuiltin, Hash: digest.SHA256(whole)}
	if diff := cmp.Diff(out.Tools[i], want); diff != "" {
		t.Errorf("its row (-got +want):\n%s", diff)
	}
}

// TestToolFingerprint: the fingerprint covers what is offered, and nothing else.
func TestToolFingerprint(t *testing.T) {
	t.Parallel()

	fingerprint := func(change func(*Input)) string {
		in := Input{Tools: office(), ToolCalling: true}
		change(&in)
		return mustCompile(t, in).Fingerprints.FingerprintTools
	}
	before := fingerprint(func(*Input) {})
	for name, tt := range map[string]struct {
		change func(*Input)
		same   bool
	}{
		"an offered tool changed": {func(in *Input) { in.Tools[1].Hash = "other" }, false},
		"a hidden tool changed":   {func(in *Input) { in.Tools[0].Hash = "other" }, true},
		"one more is hidden": {func(in *Input) {
			in.Tools = append(in.Tools, phases.MergedTool{Name: "x", Definition: phases.Tool{HiddenDomain: "x"}})
		}, true},
		"a domain was asked for":    {func(in *Input) { in.RequestedDomains = []string{"mail"} }, false},
		"a domain that is not here": {func(in *Input) { in.RequestedDomains = []string{"none"} }, true},
		"no tool calling":           {func(in *Input) { in.ToolCalling = false }, false},
		"another host's tools":      {func(in *Input) { in.ExistingTools = []string{"shell"} }, true},
	} {
		if got := fingerprint(tt.change); (got == before) != tt.same {
			t.Errorf("%s: %s, before it %s", name, got, before)
		}
	}
}

// TestToolsInAnyOrder: shuffled tools give the same bytes.
func TestToolsInAnyOrder(t *testing.T) {
	t.Parallel()

	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		in := Input{ToolCalling: rng.IntN(4) > 0, Profile: pick(rng, phases.ProfileFull, phases.ProfileFull, phases.ProfileMinimal)}
		for range rng.IntN(12) {
			in.Tools = append(in.Tools, phases.MergedTool{
				Name: pick(rng, "a", "b", "c", "d", "e"), Owner: pick(rng, "p", "q"), BundleID: pick(rng, "x", "y"), Hash: pick(rng, "", "h1", "h2"),
				Definition: phases.Tool{HiddenDomain: pick(rng, "", "", "mail", "files", nasty(rng)), Description: pick(rng, "", "d"), InputSchema: json.RawMessage(pick(rng, "", "{}"))},
			})
		}
		in.RequestedDomains = []string{pick(rng, "mail", "files", "other")}
		want := mustCompile(t, in)
		checkOutput(t, &want)
		in.Tools = slices.Clone(in.Tools)
		rng.Shuffle(len(in.Tools), reflect.Swapper(in.Tools))
		got := mustCompile(t, in)
		// Equal rows of hidden tools differ in what no prompt shows.
		if diff := cmp.Diff(asJSON(t, got), asJSON(t, want)); diff != "" {
			t.Fatalf("seed %d (-shuffled +before):\n%s", seed, diff)
		}
		definitions := func(o *Output) (list []phases.Tool) {
			for _, tool := range o.Offered {
				tool.Definition.HiddenDomain = "" // of tools that are alike in all else
				list = append(list, tool.Definition)
			}
			return list
		}
		if diff := cmp.Diff(definitions(&got), definitions(&want)); diff != "" {
			t.Fatalf("seed %d: definitions (-shuffled +before):\n%s", seed, diff)
		}
	}
}

// TestHooksOnly: a host with a prompt of its own is given the texts of hooks, and the record says what it is not given. If
// it gets tools by another way, it has all.
func TestHooksOnly(t *testing.T) {
	t.Parallel()

	in := Input{
		HooksOnly: true, Facts: Facts{Date: "2026-02-03"},
		Custom:   []CustomSection{{SectionID: "mine", Text: "of the host, too"}},
		Sections: []phases.MergedSection{{SectionID: "agents_md", Owner: "agentsdoc", Content: "Be kind.", Placement: phases.PlacementUserMessage}},
		Tools:    []phases.MergedTool{{Name: "measure", Owner: "house"}, {Name: "weigh", Owner: "house", Definition: phases.Tool{HiddenDomain: "far"}}},
	}
	out, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.Prompt.FullText, "Be kind.") || strings.Contains(out.Prompt.FullText, "2026") || strings.Contains(out.Prompt.FullText, "You are") {
		t.Errorf("the prompt is:\n%s", out.Prompt.FullText)
	}
	var omitted []string
	for _, o := range out.Omitted {
		if o.Reason == ReasonHostCannot {
			omitted = append(omitted, o.ID)
		}
	}
	if diff := cmp.Diff(omitted, []string{"identity", "safety", "mine", "extra_system", "measure", "weigh"}); diff != "" || len(out.Tools) != 0 || len(out.Offered) != 0 {
		t.Errorf("omitted (-got +want):\n%s\ntools %v, offered %v", diff, out.Tools, out.Offered)
	}
	in.ToolCalling = true
	if out, err = Compile(in); err != nil || len(out.Offered) != 2 || slices.ContainsFunc(out.Omitted, func(o phases.Omitted) bool { return o.ID == "weigh" }) {
		t.Errorf("with tools: offered %v, omitted %v, %v", out.Offered, out.Omitted, err)
	}
}
