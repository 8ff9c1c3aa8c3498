package turnstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of one call of request_tools: domains, and bytes of arguments.
const (
	maxRequested = 64
	maxRequest   = 64 << 10
)

// RequestedDomains reads the arguments of request_tools. The error is for the model.
func RequestedDomains(arguments json.RawMessage) ([]string, error) {
	var args struct {
		Domains []string `json:"domains"`
	}
	if len(arguments) > maxRequest {
		return nil, fmt.Errorf("the argument has %d bytes; at most %d", len(arguments), maxRequest)
	}
	if err := jsonscan.Check(arguments, phases.MaxJSONDepth); err != nil {
		return nil, fmt.Errorf("the argument %w", err)
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, errors.New(`the argument is not of the form {"domains": ["NAME"]}`)
	}
	switch n := len(args.Domains); {
	case n == 0:
		return nil, errors.New(`"domains" names no domain`)
	case n > maxRequested:
		return nil, fmt.Errorf(`"domains" names %d domains; at most %d at a time`, n, maxRequested)
	}
	return args.Domains, nil
}

// Definitions are the offered tools that are not the host's own.
func Definitions(offered []phases.MergedTool) []phases.Tool {
	list := make([]phases.Tool, 0, len(offered))
	for i := range offered {
		if offered[i].Owner != phases.OwnerHost {
			list = append(list, offered[i].Definition)
		}
	}
	return list
}

// ToolNames are the names of the offered and the existing tools, sorted.
func ToolNames(offered []phases.MergedTool, existing []string) []string {
	names := slices.Clone(existing)
	for i := range offered {
		names = append(names, offered[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
