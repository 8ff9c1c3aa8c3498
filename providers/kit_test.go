package providers_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// sample returns a request of the second turn of a thread: its plan has all three breakpoints, its prompt messages of
// both roles, its tools names and schemas that need care, its history a summary, calls and results, one of them late.
func sample(t testing.TB, model string) providers.Request {
	t.Helper()
	in := compiler.Input{
		Host:        compiler.HostTexts{Identity: "You are Grapnel's sample.", Safety: "Do no harm."},
		ToolCalling: true,
		Facts:       compiler.Facts{Date: "2026-02-03"},
		Sections: []phases.MergedSection{
			section("agents_md", "AGENTS.md", "", "Run `make test`.\n\n## Not a section\n\nÄ text with a heading."),
			section("skills_runtime", "Skills Runtime", "", "turn 1"),
			section("rules", "Rules", phases.PlacementSystemMessage, "Answer briefly."),
			section("workspace", "Workspace", phases.PlacementUserMessage, "The workspace is empty."),
		},
	}
	tools := []phases.Tool{
		{Name: "read_file", Description: "Reads a file.", InputSchema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"lines":{"type":"integer","maximum":1e3}}}`)},
		{Name: "memory.search", InputSchema: json.RawMessage(`{"properties":{"query":{"type":"string"}}}`)},
		{Name: "now", Description: "Tells the time."},
	}
	for _, tool := range tools {
		in.Tools = append(in.Tools, phases.MergedTool{Name: tool.Name, Owner: "host", Definition: tool})
	}
	first, err := compiler.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	m := first.Manifest()
	in.Previous, in.Sections[1].Content = &compiler.Previous{Outline: m.Outline()}, "turn 2"
	out, err := compiler.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return providers.Request{
		Model: model, MaxTokens: 1024, Prompt: out.Prompt, Sections: out.Sections, Tools: tools,
		History: history.Window{Summary: "Earlier, the user said hello.", Entries: past()},
		Turn:    []history.Entry{{ID: "8", TurnID: "3", Role: history.RoleUser, Text: "And what is in it?"}},
	}
}

func section(id, title string, placement phases.Placement, content string) phases.MergedSection {
	return phases.MergedSection{SectionID: id, Title: title, Placement: placement, Owner: "sample", Content: content}
}

func past() []history.Entry {
	return []history.Entry{
		{ID: "1", TurnID: "1", Role: history.RoleUser, Text: "Find the plan."},
		{ID: "2", TurnID: "1", Role: history.RoleAssistant, Text: "I look.", Calls: []history.Call{
			{ID: "c1", Tool: "memory.search", Arguments: json.RawMessage(`{"query":"plan","b":1,"a":2}`)},
			{ID: "c2", Tool: "now"},
		}},
		{ID: "3", TurnID: "1", Role: history.RoleTool, Results: []history.Result{{CallID: "c1", Text: "plan.go"}}},
		{ID: "4", TurnID: "1", Role: history.RoleUser, Text: "Hurry."},
		{ID: "5", TurnID: "1", Role: history.RoleTool, Results: []history.Result{{CallID: "c2", Text: "no clock", IsError: true}}},
		{ID: "6", TurnID: "1", Role: history.RoleAssistant, Text: "It is in plan.go."},
		{ID: "7", TurnID: "2", Role: history.RoleUser, Text: "Good."},
	}
}

// TestConformance: what every adapter has to keep to.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name := range adapters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conform(t, name)
		})
	}
}

func conform(t *testing.T, provider string) {
	t.Helper()
	body := func(r providers.Request) string { return string(send(t, adapters()[provider].build, r).body) }
	want := body(sample(t, "m"))
	if diff := cmp.Diff(body(sample(t, "m")), want); diff != "" {
		t.Errorf("equal requests are other bytes (-one +other):\n%s", diff)
	}
	r := sample(t, "m")
	slices.Reverse(r.Tools)
	r.Tools[2].InputSchema = json.RawMessage(`{"properties":{"lines":{"maximum":1000,"type":"integer"},"path":{"type":"string"}}, "required":["path"],"type":"object"}`)
	if diff := cmp.Diff(body(r), want); diff != "" {
		t.Errorf("the order of tools or members matters (-got +want):\n%s", diff)
	}
	wantOnce(t, want)
	r = sample(t, "m")
	r.AfterConversation = []string{"skills_runtime", "not there"}
	behind := body(r)
	if wantOnce(t, behind); strings.Index(behind, "turn 2") < strings.Index(behind, "And what is in it?") {
		t.Errorf("the section is not behind the user's words: %s", behind)
	}
	r = sample(t, "m")
	r.Tools = []phases.Tool{compiler.RequestTools(), {Name: "send_mail", HiddenDomain: "domain of post"}}
	wantTools(t, body(r))
	body(providers.Request{Model: "m"})
}

func wantOnce(t *testing.T, body string) {
	t.Helper()
	for _, text := range []string{
		"You are Grapnel's sample.", "Do no harm.", "Ä text with a heading.", "turn 2", "2026-02-03", "Answer briefly.", "The workspace is empty.",
		"Earlier, the user said hello.", "Find the plan.", "I look.", "plan.go\"", "no clock", "Hurry.", "It is in plan.go.", "Good.", "And what is in it?",
		"Reads a file.", "Tells the time.",
	} {
		if n := strings.Count(body, text); n != 1 {
			t.Errorf("%q is there %d times, want once", text, n)
		}
	}
}

// wantTools wants request_tools and a tool that it has loaded, and no word of where that was hidden.
func wantTools(t *testing.T, body string) {
	t.Helper()
	for _, text := range []string{"request_tools", "domains", "send_mail"} {
		if !strings.Contains(body, text) {
			t.Errorf("%s is not there: %s", text, body)
		}
	}
	if strings.Contains(body, "domain of post") {
		t.Errorf("the domain of a tool was sent: %s", body)
	}
}

var update = flag.Bool("update", false, "write the expectations of testdata anew")

// golden compares JSON with a file, members in their order.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(got), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	b.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(want)); diff != "" {
		t.Errorf("%s (-got +want):\n%s", file, diff)
	}
}
