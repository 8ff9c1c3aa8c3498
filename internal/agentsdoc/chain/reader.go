package chain

import (
	"cmp"
	"math"
	"slices"
)

// Reader is what an agent, behind whose hooks the plugin works, reads by itself.
type Reader struct {
	Dir     string // where it does; empty for the directory of the chain
	Options Options
}

// AgentOptions are the options by which an agent reads instruction files by itself, by the name of its bridge; false for an
// agent that is not known.
func AgentOptions(agent string, at Places) (Options, bool) {
	presets := map[string]Preset{
		"claude-code": PresetClaude, "codex": PresetCodex, "cursor": PresetCursor, "gemini": PresetGemini, "opencode": PresetOpencode,
	}
	if o, err := ForPreset(presets[agent], at); err == nil {
		o.Above = agent == "claude-code" // up to the top of the file system
		return o, true
	}
	o := defaultOptions(Places{})
	o.LocalNames, o.GlobalDir, o.Markers, o.Resolver.Delivery = nil, "", []string{".git"}, DeliverOff
	switch agent {
	case "amp": // ampcode.com/manual#AGENTS.md
		o.Names = []string{"AGENTS.md", "AGENT.md", "CLAUDE.md"}
	case "copilot": // docs.github.com, how-tos/copilot-cli/customize-copilot/add-custom-instructions
		o.Names, o.AllNames = []string{"AGENTS.md", ".github/copilot-instructions.md"}, true
	case "vscode": // code.visualstudio.com/docs/copilot/customization/custom-instructions: of the workspace's directory alone
		o.Names, o.AllNames, o.Markers = []string{"AGENTS.md", ".github/copilot-instructions.md"}, true, nil
	default:
		return Options{}, false
	}
	return o.common(at), true
}

// leaveToReaders skips the sources that a reader has given the model.
func (r *resolver) leaveToReaders() {
	var read []string
	for i := range r.chain.Options.Readers {
		by := &r.chain.Options.Readers[i]
		theirs := resolve(r.view, cmp.Or(by.Dir, r.chain.Dir), by.Options, r.touched)
		for _, d := range theirs.Diagnostics {
			if d.Code == CodeReadByAgent && !r.touched {
				r.report(d)
			}
		}
		for _, s := range Render(theirs, Budget{Bytes: by.Options.Budget.Total, Chars: math.MaxInt32}).Sources {
			if s.DeliveredBytes > 0 || len(s.Globs) > 0 {
				read = append(read, s.Path, s.RealPath)
				for _, in := range s.Imports {
					read = append(read, in.Path)
				}
			}
		}
	}
	for i := range r.chain.Sources {
		if s := &r.chain.Sources[i]; (s.usable() || len(s.Globs) > 0) && (slices.Contains(read, s.Path) || slices.Contains(read, s.RealPath)) {
			s.State, s.Reason, s.Text, s.Globs, s.origin = StateSkipped, string(CodeReadByAgent), "", nil, origin{}
			r.report(diagnostic(CodeReadByAgent, s.Path, "the agent reads it by itself, so it is not sent"))
		}
	}
}
