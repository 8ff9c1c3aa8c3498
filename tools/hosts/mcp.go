package main

import (
	"encoding/json"
	"io"
)

const (
	mcpMode = "mcp"
	mcpTool = "mcp__probe__tell"
	// ourTool is the plugin's, by way of the gateway's MCP server.
	ourTool = "mcp__grapnel__tell"
)

// serveMCP is an MCP server with one tool, which tells the secret.
func serveMCP(r io.Reader, w io.Writer) {
	dec, enc := json.NewDecoder(r), json.NewEncoder(w)
	for {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if dec.Decode(&req) != nil {
			return
		}
		var result any = map[string]any{}
		switch req.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": req.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]string{"name": "probe", "version": "1"},
			}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{"name": "tell", "description": "Tells it", "inputSchema": map[string]any{"type": "object"}}}}
		case "tools/call":
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": secret}}}
		}
		if req.ID == nil {
			continue
		}
		if enc.Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result}) != nil {
			return
		}
	}
}
