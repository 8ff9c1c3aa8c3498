package mcp

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

type (
	listedServer struct {
		Server      string       `json:"server"`
		Diagnostics []string     `json:"diagnostics,omitempty"`
		Tools       []listedTool `json:"tools"`
		// Accept is what the configuration takes: all definitions as they are now.
		Accept map[string]string `json:"accept"`
	}
	listedTool struct {
		Tool        string          `json:"tool"`
		Name        string          `json:"name,omitempty"`
		Status      status          `json:"status"`
		Offered     bool            `json:"offered"`
		Hidden      string          `json:"hidden_domain,omitempty"`
		Hash        string          `json:"hash"`
		Known       string          `json:"known_hash,omitempty"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema,omitempty"`
	}
)

// list is the handler of mcp_tools.
func (v *view) list(ctx context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
	all := []listedServer{}
	for _, name := range v.names {
		got, err := v.judge(ctx, call.Host, name)
		if err != nil {
			return nil, err
		}
		s := listedServer{Server: name, Tools: []listedTool{}, Accept: map[string]string{}}
		for i := range got.diagnostics {
			s.Diagnostics = append(s.Diagnostics, got.diagnostics[i].Code+": "+got.diagnostics[i].Message)
		}
		for _, j := range got.all() {
			s.Accept[j.own] = j.hash
			s.Tools = append(s.Tools, listedTool{
				j.own, j.tool.Name, j.status, j.offered(v.config), j.tool.HiddenDomain, j.hash, j.known, j.tool.Description, j.tool.InputSchema,
			})
		}
		all = append(all, s)
	}
	raw, err := json.MarshalIndent(all, "", "  ")
	return &phases.ToolResult{Content: raw}, err
}
