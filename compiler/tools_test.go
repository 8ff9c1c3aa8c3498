package compiler

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/digest"
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
