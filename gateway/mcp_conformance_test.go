package gateway

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// conformanceVariable holds the command of the official suite, as "make mcp-conformance" sets it.
const conformanceVariable = "GRAPNEL_MCP_CONFORMANCE"

// offered are the suite's scenarios about what the gateway offers: its handshake, tools whose results are texts, and
// protection of a local server. The others are about prompts, resources, logging, progress, pictures and sounds, streams,
// and questions to the client, of which it has none.
var offered = []string{
	"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error", "json-schema-2020-12", "dns-rebinding-protection",
}

// suite is a plugin with the tools that the suite asks for.
func suite() *sdk.Plugin {
	p := house()
	answer := func(text string, isError bool) sdk.ToolHandler {
		return func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			r := sdk.Text(text)
			r.IsError = isError
			return r, nil
		}
	}
	p.Tools = []sdk.Tool{
		{Tool: phases.Tool{Name: "test_simple_text", Description: "Returns a text."}, Call: answer("This is a simple text response for testing.", false)},
		{Tool: phases.Tool{Name: "test_error_handling", Description: "Fails."}, Call: answer("This tool intentionally returns an error for testing", true)},
		{Tool: phases.Tool{Name: "json_schema_2020_12_tool", Description: "Tool with JSON Schema 2020-12 features", InputSchema: json.RawMessage(`{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
			"$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
			"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}}, "additionalProperties": false}`)}, Call: answer("", false)},
	}
	p.Hooks[1].PreTools = func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
		b := &phases.ToolBundle{BundleID: "suite"}
		for i := range p.Tools {
			b.Tools = append(b.Tools, p.Tools[i].Tool)
		}
		return sdk.Reply(b)
	}
	return p
}

// TestMCPConformance runs the official suite of the protocol.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	command := strings.Fields(os.Getenv(conformanceVariable))
	if len(command) == 0 {
		t.Skip("it needs Node.js 22 and the npm registry: make mcp-conformance")
	}
	tree := storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, nil, time.Now, suite())})
	for _, scenario := range offered {
		t.Run(scenario, func(t *testing.T) {
			args := slices.Concat(command[1:], []string{"server", "--url", "http://" + s.addr + mcpPath, "--scenario", scenario})
			out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
