package chain

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// agentFile is an instruction file of an agent, by its name and the directory that it has to be in, if any.
type agentFile struct{ dir, name, agent string }

func agentFiles() []agentFile {
	return []agentFile{
		{"", "AGENTS.md", "many agents"},
		{"", "AGENTS.override.md", "Codex"},
		{"", "CLAUDE.md", "Claude Code"},
		{"", "CLAUDE.local.md", "Claude Code"},
		{"", "GEMINI.md", "Gemini CLI"},
		{"", ".cursorrules", "Cursor"},
		{"", ".windsurfrules", "Windsurf"},
		{"", ".clinerules", "Cline"},
		{".github", "copilot-instructions.md", "Copilot"},
	}
}

// AgentFileNames are the names of the files that [AgentOf] knows.
func AgentFileNames() (names []string) {
	for _, f := range agentFiles() {
		names = append(names, f.name)
	}
	return names
}

// AgentOf says which agent an instruction file is for, by its path, and what would make these options read it. Both
// are empty if the file is for none, or the options count its name.
func (o *Options) AgentOf(file string) (agent, remedy string) {
	dir, name := filepath.Split(file)
	known := slices.Concat(o.Names, o.FallbackNames, o.LocalNames, slices.Concat(o.Otherwise...))
	counts := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return path.Base(n) == name })
	}
	i := slices.IndexFunc(agentFiles(), func(f agentFile) bool {
		return f.name == name && (f.dir == "" || f.dir == filepath.Base(dir))
	})
	if i < 0 || counts(known) {
		return "", ""
	}
	f := agentFiles()[i]
	full := path.Join(f.dir, name)
	remedy = fmt.Sprintf("fallback_names: [%s] would read it", full)
	for _, p := range presets() {
		if q := p.options(Places{}); p.name != PresetDefault && counts(q.Names) {
			return f.agent, fmt.Sprintf("%s, and so would the preset %s", remedy, p.name)
		}
	}
	return f.agent, remedy
}

// isPage reports whether a file, by its path in the tree, is a page of documentation with a name that an instruction
// file could have been meant by.
func isPage(display string) bool {
	dir, name := path.Split(display)
	if strings.HasPrefix(name, "AGENT") {
		return false // pages are not called so
	}
	return slices.ContainsFunc(strings.Split(dir, "/"), func(elem string) bool {
		return slices.Contains([]string{
			"blog", "content", "doc", "docs", "documentation", "guide", "guides", "manual", "pages", "site", "website", "wiki",
		}, strings.ToLower(elem))
	})
}
