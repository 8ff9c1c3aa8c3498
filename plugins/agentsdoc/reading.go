package agentsdoc

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// A tool that reads an instruction file for the model has delivered it. Before
// the call such a file is therefore not told of; after it, it counts as told,
// unless the call failed. A host that names its tools otherwise loses nothing
// but that: the file is told of, and then read once more.

// readsFiles reports whether a tool gives the model the text of the files that
// it touches, as its name says in the hosts that are around: "Read",
// "read_file", "mcp__fs__read_text_file".
func readsFiles(tool string) bool {
	tool = path.Base(strings.NewReplacer("__", "/", ".", "/", ":", "/").Replace(tool))
	switch strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(tool)) {
	case "read", "readfile", "readfiles", "readtextfile", "readmanyfiles", "readmultiplefiles", "view", "viewfile", "cat", "openfile":
		return true
	default:
		return false
	}
}

// wentWell reports whether a call did what it should, as far as the host says.
func wentWell(outcome string) bool {
	switch strings.ToLower(outcome) {
	case "", "ok", "success", "succeeded":
		return true
	default:
		return false
	}
}

// readBy are the paths of a call that are of instruction files and whose text the
// tool gives the model.
func readBy(o *chain.Options, tool string, paths []string) (read, rest []string) {
	if !readsFiles(tool) {
		return nil, paths
	}
	for _, p := range paths {
		name := filepath.Base(p)
		if slices.Contains(o.Names, name) || slices.Contains(o.FallbackNames, name) || slices.Contains(o.LocalNames, name) {
			read = append(read, p)
		} else {
			rest = append(rest, p)
		}
	}
	return read, rest
}

// absolute are paths as the host means them: relative ones are below its working
// folder, whatever the session's is.
func absolute(c *phases.Context, paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		if out[i] = p; !filepath.IsAbs(p) {
			out[i] = filepath.Join(c.Dir, p)
		}
	}
	return out
}
