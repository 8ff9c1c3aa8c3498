package agent

import (
	"regexp"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
)

// The owners of parts of a request that are of no plugin and no MCP server, and what is not the agent's.
const (
	OfUser    = "user"
	OfModel   = "model"
	OfGrapnel = "grapnel"
)

// Reading is how far the file was read that an agent keeps of a conversation; the zero value is before its beginning.
type Reading struct {
	Path   string
	Offset int64
	// History is that of what was read. Calls has the tools of calls without a result, by their ids.
	History manifest.History
	Calls   map[string]string
	// Lost is why the messages are not known any more; empty if they are.
	Lost string
}

// NotSeen is the fact that parts of a request are not in its record.
func NotSeen(parts string) manifest.HostFact {
	return manifest.HostFact{Name: "not_seen", Value: parts}
}

// ToolOwner returns the owner of a tool by its name: the MCP server in PREFIX SERVER SEPARATOR TOOL, or else the agent.
func ToolOwner(agent, tool, prefix, separator string) string {
	rest, named := strings.CutPrefix(tool, prefix)
	switch server, _, ok := strings.Cut(rest, separator); {
	case !named || !ok:
		return agent
	case server == OfGrapnel:
		return OfGrapnel
	default:
		return "mcp:" + server
	}
}

// WithFiles cuts a part of a request at the files of instructions in it. Begin matches what stands before one, with its name, and
// end what stands behind it.
func WithFiles(p compiler.RequestPart, begin, end *regexp.Regexp) (parts []compiler.RequestPart) {
	for p.Text != "" {
		at := begin.FindStringSubmatchIndex(p.Text)
		if at == nil {
			return append(parts, p)
		}
		before, file, rest := p, p, p.Text[at[1]:]
		length := len(rest)
		for _, stop := range []*regexp.Regexp{begin, end} {
			if next := stop.FindStringIndex(rest); next != nil {
				length = min(length, next[0])
			}
		}
		before.Text, file.Text, file.Kind, file.ID = p.Text[:at[1]], rest[:length], "instructions", p.Text[at[2]:at[3]]
		parts, p.Text = append(parts, before, file), rest[length:]
	}
	return parts
}
