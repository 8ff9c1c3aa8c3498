package above

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Own is the Kind of Grapnel's own mod. It is Before if no other one is.
const Own = "Grapnel's mod"

// settings are what files say about mods.
type settings struct {
	Enabled map[string]any `json:"enabledPlugins"`
	Prepend []string       `json:"prependPlugins"`
	Markets map[string]struct {
		Source struct{ Source, Path string }
	} `json:"extraKnownMarketplaces"`
	Env struct {
		Dirs string `json:"CLAUDE_CODE_PLUGIN_DIRS"`
	}
}

// mods adds rows for the mods of plugins that are enabled, or are loaded for their place. Of the settings of a project, order
// and marketplaces do not count.
func (f *finder) mods(a *agent.AbovePlace) {
	var all, project settings
	var installed struct {
		Plugins map[string][]struct{ InstallPath string }
	}
	load := func(into any, patterns ...string) {
		for _, file := range f.glob(patterns...) {
			f.decode(agent.Above{ID: filepath.Base(file), Kind: "setting", Path: file}, "", into)
		}
	}
	load(&all.Markets, "~/.claude/plugins/known_marketplaces.json")
	load(&installed, "~/.claude/plugins/installed_plugins.json")
	load(&all, a.Files...)
	load(&project, "./.claude/settings.json", "./.claude/settings.local.json")
	enabled, first := map[string]any{}, len(f.rows)
	maps.Copy(enabled, all.Enabled)
	maps.Copy(enabled, project.Enabled)
	for _, id := range slices.Sorted(maps.Keys(enabled)) {
		dirs := installed.Plugins[id]
		name, market, _ := strings.Cut(id, "@")
		if from := all.Markets[market].Source; from.Source == "directory" { // Claude Code reads it there
			dirs = append(dirs[:0:0], struct{ InstallPath string }{f.source(from.Path, name)})
		}
		for _, dir := range dirs {
			f.mod(a, enabled, dir.InstallPath, id)
		}
	}
	for _, file := range f.glob("~/.claude/skills/*/.claude-plugin/plugin.json", "./.claude/skills/*/.claude-plugin/plugin.json") {
		f.mod(a, enabled, filepath.Dir(filepath.Dir(file)), "skills-dir")
	}
	for _, dir := range filepath.SplitList(cmp.Or(f.env("CLAUDE_CODE_PLUGIN_DIRS"), all.Env.Dirs)) {
		f.mod(a, enabled, dir, "inline")
	}
	order(f.rows[first:], all.Prepend)
}

// source is the directory of a plugin in a marketplace that is a directory.
func (f *finder) source(market, name string) string {
	var list struct {
		Metadata struct{ PluginRoot string }
		Plugins  []struct {
			Name   string
			Source any
		}
	}
	f.decode(agent.Above{ID: name, Kind: agent.Mods, Path: filepath.Join(market, ".claude-plugin", "marketplace.json")}, "", &list)
	for _, p := range list.Plugins {
		if dir, _ := p.Source.(string); p.Name == name && strings.HasPrefix(dir, "./") {
			return filepath.Join(market, dir)
		} else if p.Name == name && dir != "" {
			return filepath.Join(market, list.Metadata.PluginRoot, dir)
		}
	}
	return ""
}

// mod adds a row for a plugin with a module; one that is loaded for its place has its own name, and the place for an id.
func (f *finder) mod(a *agent.AbovePlace, enabled map[string]any, dir, id string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || dir == "" {
		return
	}
	var manifest struct {
		Name  string
		Hooks any
	}
	row := agent.Above{ID: id, Kind: agent.Mods, Path: filepath.Join(real, ".claude-plugin", "plugin.json"), Events: []string{}}
	f.decode(row, real, &manifest)
	if !strings.Contains(id, "@") {
		row.ID = cmp.Or(manifest.Name, filepath.Base(dir)) + "@" + id
	}
	if on, set := enabled[row.ID].(bool); set && !on {
		return
	}
	also, _ := manifest.Hooks.([]any)
	for _, name := range append([]any{"hooks/hooks.json", manifest.Hooks}, also...) {
		var hooks struct{ Modules []string }
		file, _ := name.(string)
		row.Path = filepath.Join(real, file)
		if file == "" || !f.decode(row, real, &hooks) || len(hooks.Modules) == 0 {
			continue
		}
		module := filepath.Join(filepath.Dir(row.Path), hooks.Modules[0])
		text, err := f.scan(a, real, module, &row)
		if row.Path = dir; err != nil {
			f.unread(row, err)
			return
		}
		if isOwn(text, a.Own) {
			row.Kind = Own
		}
		f.rows = append(f.rows, row)
		return
	}
}

// filled is the line of our mod that install fills in.
var filled = lazyregexp.New(`(?m)^const PROGRAM = \[(?:'grapnel-hook'|"(?:[^"\\\n]|\\.)*"(?:,"(?:[^"\\\n]|\\.)*")*)\]`)

// isOwn reports whether a module is ours, but for what install fills in.
func isOwn(text, source string) bool {
	return source != "" && filled().ReplaceAllLiteralString(text, "") == filled().ReplaceAllLiteralString(plain(source), "")
}

// scan sets what a module and its imports take and can do, and returns the module's text.
func (f *finder) scan(a *agent.AbovePlace, dir, module string, row *agent.Above) (first string, err error) {
	queue := []string{module}
	for i := 0; i < len(queue); i++ {
		text, err := read(queue[i], dir)
		if f.left -= len(text); err == nil && (f.left < 0 || len(queue) > mostFiles) {
			err = errors.New("the modules are too much")
		}
		if err != nil {
			return "", err
		}
		text = plain(text)
		first = cmp.Or(first, text)
		row.Events = append(row.Events, named(a.Powers, text)...)
		for _, m := range nearby().FindAllStringSubmatch(text, mostFiles+1) {
			f.left -= 4 << 10 // what it costs to look for it
			file := filepath.Join(filepath.Dir(queue[i]), m[1])
			for _, base := range []string{file, strings.TrimSuffix(file, filepath.Ext(file)), filepath.Join(file, "index")} {
				for _, ext := range []string{"", ".ts", ".tsx", ".jsx", ".js", ".mjs", ".cjs", ".mts", ".cts"} { // Claude Code completes names
					if info, err := os.Stat(base + ext); err == nil && !info.IsDir() && !slices.Contains(queue, base+ext) {
						queue = append(queue, base+ext)
					}
				}
			}
		}
	}
	slices.Sort(row.Events)
	row.Events = slices.Compact(row.Events)
	row.Can = can(a.Powers, row.Events)
	return first, nil
}

// order says of each mod whether it has the last word over Grapnel's, by the list of those that stand above all others.
func order(rows []agent.Above, prepend []string) {
	place := func(r *agent.Above) int { return (slices.Index(prepend, r.ID) + len(prepend) + 1) % (len(prepend) + 1) }
	own := slices.IndexFunc(rows, func(r agent.Above) bool { return r.Kind == Own })
	for i := range rows {
		rows[i].Before = i != own && (own < 0 || place(&rows[i]) <= place(&rows[own]))
	}
	if own >= 0 {
		rows[own].Can, rows[own].Before = []string{}, !slices.ContainsFunc(rows, func(r agent.Above) bool { return r.Before })
	}
}
