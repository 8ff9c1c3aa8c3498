package turnstate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxHostTools bounds the definitions that are remembered.
const maxHostTools = 1024

// HostTools makes the rows of hosts' own tools. It remembers hashes by definition, because a host brings the same ones
// with each prompt. The zero value is empty. It is safe for concurrent use.
type HostTools struct {
	mu    sync.Mutex
	known map[string]hashedTool
}

type hashedTool struct {
	tool phases.Tool
	hash string
}

// Names are the names of the host's tools: those given, and those of definitions.
func (h *HostTools) Names(names []string, tools []phases.Tool) []string {
	names = slices.Clip(names)
	for i := range tools {
		if !slices.Contains(names, tools[i].Name) {
			names = append(names, tools[i].Name)
		}
	}
	return names
}

// Rows are the rows of named tools, by name, with the hashes of those that are defined.
func (h *HostTools) Rows(names []string, tools []phases.Tool, key []byte) []manifest.HostTool {
	rows := make([]manifest.HostTool, 0, len(names))
	for _, name := range names {
		row := manifest.HostTool{Name: text.Repair(name)}
		if i := slices.IndexFunc(tools, func(t phases.Tool) bool { return t.Name == name }); i >= 0 {
			row.Hash = h.hash(&tools[i], key)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b manifest.HostTool) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(rows)
}

func (h *HostTools) hash(t *phases.Tool, key []byte) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k, ok := h.known[t.Name]; ok && k.tool.Description == t.Description && bytes.Equal(k.tool.InputSchema, t.InputSchema) {
		return k.hash
	}
	own := phases.Tool{Name: t.Name, Description: t.Description, InputSchema: bytes.Clone(t.InputSchema)}
	raw, err := json.Marshal(own)
	if err != nil {
		return "" // the schema is no JSON
	}
	if h.known == nil || len(h.known) >= maxHostTools {
		h.known = map[string]hashedTool{}
	}
	k := hashedTool{own, manifest.HashRaw(raw, key)}
	h.known[t.Name] = k
	return k.hash
}

// History is what a host says of its conversation. With a key its hash is keyed, too: that of a short conversation
// could be guessed.
func History(h *manifest.History, key []byte) *manifest.History {
	if h == nil {
		return nil
	}
	own := *h
	own.Hash = text.Repair(own.Hash)
	if len(key) > 0 {
		own.Hash = manifest.Hash(own.Hash, key)
	}
	return &own
}
