package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// offering is a plugin that answers tools and offers each of them.
func offering(name string, tools ...sdk.Tool) *sdk.Plugin {
	b := &phases.ToolBundle{BundleID: name}
	for _, tool := range tools {
		b.Tools = append(b.Tools, tool.Tool)
	}
	p := plugin(name, on("tools", phases.PreTools, reply(b), phases.KindToolBundle))
	p.Tools = tools
	return p
}

// tool is a tool of a handler.
func tool(name string, call sdk.ToolHandler) sdk.Tool {
	return sdk.Tool{Tool: phases.Tool{Name: name, Description: "does " + name}, Call: call}
}

// gives is a tool that answers alike whenever it is called; says answers with a text.
func gives(name string, res *phases.ToolResult, err error) sdk.Tool {
	return tool(name, func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return res, err })
}

func says(name, text string) sdk.Tool { return gives(name, sdk.Text(text), nil) }

// opened is a turn that has its tools.
func opened(t testing.TB, eng *runtime.Engine) *runtime.Turn {
	t.Helper()
	return openedAt(t, eng, host())
}

func openedAt(t testing.TB, eng *runtime.Engine, c phases.Context) *runtime.Turn {
	t.Helper()
	turn := beginAt(t, eng, c)
	outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{ToolCalling: true}))
	return turn
}

// compiled compiles with tool calling.
func compiled(t testing.TB, turn *runtime.Turn) *runtime.Compiled {
	t.Helper()
	done := prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true}))
	checkRecord(t, done.Manifest)
	return done
}

// checkRecord holds a manifest against its own rules and the published schema.
func checkRecord(t testing.TB, m *manifest.Manifest) {
	t.Helper()
	if err := manifest.Validate(m); err != nil {
		t.Errorf("the manifest is not valid: %v", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(manifest.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := manifest.Canonical(m)
	if err != nil {
		t.Fatal(err)
	}
	var record any
	if err := json.Unmarshal(b, &record); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(record); err != nil {
		t.Errorf("the manifest does not fit the schema: %v", err)
	}
}

// toolRuns are the ledger's rows of tool calls.
func toolRuns(m *manifest.Manifest) []phases.Run {
	return slices.DeleteFunc(slices.Clone(m.Runs), func(r phases.Run) bool { return r.Phase != phases.PhaseToolCall })
}

// rowsOf writes rows of the ledger down: "subscription state code" each.
func rowsOf(runs []phases.Run) []string {
	lines := []string{}
	for _, r := range runs {
		lines = append(lines, strings.TrimSpace(r.Subscription+" "+string(r.State)+" "+r.Code))
	}
	return lines
}

// hiding hides a tool in a domain.
func hiding(domain string, t sdk.Tool) sdk.Tool {
	t.HiddenDomain = domain
	return t
}

// office is a plugin with an open tool, two in one domain and one in another.
func office() *sdk.Plugin {
	return offering("office", says("read", "a file"), hiding("mail", says("send_mail", "sent")), hiding("mail", says("list_mail", "none")),
		hiding("calendar", says("add_event", "added")))
}

// request calls request_tools and returns its answer.
func request(t testing.TB, turn *runtime.Turn, arguments string) *phases.ToolResult {
	t.Helper()
	res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: phases.RequestTools, Arguments: raw(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// offered lists the tools of a request; hidden ones are in brackets.
func offered(t testing.TB, done *runtime.Compiled) []string {
	t.Helper()
	var list, rows []string
	for i, tool := range done.Tools {
		list = append(list, tool.Name)
		b, err := digest.EncoderOf[phases.Tool]().Append(nil, &done.Tools[i])
		at := slices.IndexFunc(done.Manifest.Tools, func(row manifest.Tool) bool { return row.Name == tool.Name })
		if err != nil || at < 0 || done.Manifest.Tools[at].Hash != digest.SHA256(b) {
			t.Errorf("the record has no hash of %s: %v", b, err)
		}
	}
	for _, row := range done.Manifest.Tools {
		if row.HiddenDomain == "" {
			rows = append(rows, row.Name)
		} else {
			list = append(list, "("+row.Name+")")
		}
	}
	if diff := cmp.Diff(rows, list[:len(rows)]); diff != "" {
		t.Errorf("the manifest offers other tools (-manifest +request):\n%s", diff)
	}
	return list
}

// hiddenList is the list of the section hidden_tool_domains; "" without it.
func hiddenList(done *runtime.Compiled) string {
	_, list, _ := strings.Cut(done.Prompt.DynamicText, "A tool cannot be called before that.\n\n")
	list, _, _ = strings.Cut(list, "\n\n## ")
	return list
}
