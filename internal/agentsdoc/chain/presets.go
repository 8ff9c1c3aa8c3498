package chain

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Places are the user's directories. One that is not absolute counts as empty.
type Places struct {
	Home       string
	ConfigHome string // defaults to .config in Home
	CodexHome  string // directory of the tool codex; defaults to .codex in Home
	ClaudeHome string // directory of Claude Code; defaults to .claude in Home
	GeminiHome string // directory that has the .gemini of Gemini CLI; defaults to Home
}

// configDirs are the directories in which markers do not count. One that the environment moves does not make the
// usual one a source tree.
func (p Places) configDirs() []string {
	dirs := []string{}
	for _, dir := range []string{p.ConfigHome, p.CodexHome, filepath.Join(p.Home, ".config"), filepath.Join(p.Home, ".codex")} {
		if dir = firstAbsolute(dir); dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func firstAbsolute(paths ...string) string {
	for _, path := range paths {
		if filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
	}
	return ""
}

// Default returns the options of the default preset without the user's own files.
func Default() Options { return defaultOptions(Places{}).common(Places{}) }

// ForPreset returns the options of a preset for a user. The error names the existing presets.
func ForPreset(name Preset, at Places) (Options, error) {
	for _, p := range presets() {
		if p.name == name {
			return p.options(at).common(at), nil
		}
	}
	return Options{}, fmt.Errorf("unknown preset %q, want one of %v", name, Presets())
}

type presetOptions struct {
	name    Preset
	options func(Places) Options
}

func presets() []presetOptions {
	return []presetOptions{
		{PresetDefault, defaultOptions},
		{PresetCodex, codexOptions},
		{PresetCodelia, codeliaOptions},
		{PresetClaude, claudeOptions},
		{PresetGemini, geminiOptions},
		{PresetOpencode, opencodeOptions},
		{PresetCursor, cursorOptions},
	}
}

// Presets are the names of the presets.
func Presets() []Preset {
	var names []Preset
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

func defaultOptions(at Places) Options {
	o := Options{
		Preset:        PresetDefault,
		Names:         []string{"AGENTS.override.md", "AGENTS.md"},
		LocalNames:    []string{"AGENTS.local.md"},
		EmptyOverride: EmptyOverride{Project: OverrideFallsThrough, Global: OverrideFallsThrough},
		Markers:       []string{".git", ".jj", ".hg"},
		GlobalNames:   []string{"AGENTS.override.md", "AGENTS.md"},
		Checks:        Checks{Normal: true, Duplicates: true, Stubs: true, NearMisses: true, WideRoots: true, Hidden: true},
		Layout:        LayoutDelimited,
		Placement:     PlaceSystem,
		Budget:        Limits{File: 32 << 10, Total: 32 << 10, Files: 32, Floor: 1 << 10, GlobalFloor: 4 << 10},
		Resolver:      Resolver{Delivery: DeliverBody, ChangedWhen: ChangedByHash},
	}
	if config := firstAbsolute(at.ConfigHome, filepath.Join(at.Home, ".config")); config != "" {
		o.GlobalDir = filepath.Join(config, "grapnel")
	}
	return o
}

// codexOptions are the rules of codex 0.171.0 (codex-rs/core/src/agents_md.rs). Projects that are not trusted supply no
// instructions (release notes of 0.150.0).
func codexOptions(at Places) Options {
	return Options{
		Preset:        PresetCodex,
		Names:         []string{"AGENTS.override.md", "AGENTS.md"},
		EmptyOverride: EmptyOverride{Project: OverrideShadows, Global: OverrideFallsThrough},
		Markers:       []string{".git"},
		GlobalDir:     firstAbsolute(at.CodexHome, filepath.Join(at.Home, ".codex")),
		GlobalNames:   []string{"AGENTS.override.md", "AGENTS.md"},
		Layout:        LayoutJoined,
		Placement:     PlaceUserMessage,
		Untrusted:     UntrustedSkip,
		Budget:        Limits{Total: 32 << 10},
		Resolver:      Resolver{Delivery: DeliverOff, ChangedWhen: ChangedNeverResolved},
	}
}

func codeliaOptions(at Places) Options {
	return Options{
		Preset:        PresetCodelia,
		Names:         []string{"AGENTS.md"},
		EmptyOverride: EmptyOverride{Project: OverrideFallsThrough, Global: OverrideFallsThrough},
		Markers:       []string{".codelia", ".git", ".jj"},
		Layout:        LayoutTitled,
		Placement:     PlaceSystemMessage,
		Budget:        Limits{Total: 256 << 10, Files: 16},
		Resolver:      Resolver{Delivery: DeliverReminder, ChangedWhen: ChangedByTimeOrHash, RootFirst: true},
	}
}

// wholeTotal bounds the texts of tools that have no limit of their own.
const wholeTotal = 1 << 20

// claudeOptions are the rules of Claude Code 2.1.332 (@anthropic-ai/claude-code on npm, the functions that load
// instruction files; code.claude.com/docs/en/memory) and of its built-in plugin agents-md, which reads AGENTS.md in a
// project without CLAUDE.md. They differ in this: the tree ends at the repository instead of the top of the file system,
// all of it counts as inside for imports instead of the working directory, and those that lead out need Options.Allow
// instead of a dialog.
func claudeOptions(at Places) Options {
	o := Options{
		Preset:      PresetClaude,
		Names:       []string{"CLAUDE.md", ".claude/CLAUDE.md"},
		LocalNames:  []string{"CLAUDE.local.md"},
		AllNames:    true,
		Otherwise:   [][]string{{"AGENTS.md", ".claude/AGENTS.md"}},
		Rules:       Rules{Dir: ".claude/rules", GlobalDir: "rules", Suffixes: []string{".md"}, Bare: true},
		Markers:     []string{".git"},
		GlobalDir:   firstAbsolute(at.ClaudeHome, filepath.Join(at.Home, ".claude")),
		GlobalNames: []string{"CLAUDE.md"},
		Imports:     ImportListed,
		Markdown:    true,
		Untrusted:   UntrustedSkip,
		Checks:      Checks{WideRoots: true, Hidden: true},
		Layout:      LayoutContents,
		Placement:   PlaceUserMessage,
		Budget:      Limits{Total: wholeTotal},
		Resolver:    Resolver{Delivery: DeliverBody, ChangedWhen: ChangedByHash, RootFirst: true},
	}
	if at.Home != "" {
		o.Managed = map[string]string{
			"linux": "/etc/claude-code/CLAUDE.md", "darwin": "/Library/Application Support/ClaudeCode/CLAUDE.md",
		}[runtime.GOOS]
	}
	return o
}

// geminiOptions are the rules of Gemini CLI (packages/core/src/utils/memoryDiscovery.ts and memoryImportProcessor.ts,
// google-gemini/gemini-cli 5411f113; the same in @google/gemini-cli 0.61.0), with its import format "tree".
func geminiOptions(at Places) Options {
	return Options{
		Preset:      PresetGemini,
		Names:       []string{"GEMINI.md"},
		AllNames:    true,
		Markers:     []string{".git"},
		GlobalDir:   firstAbsolute(filepath.Join(firstAbsolute(at.GeminiHome, at.Home), ".gemini")),
		GlobalNames: []string{"GEMINI.md"},
		Imports:     ImportInline,
		Untrusted:   UntrustedSkip,
		Checks:      Checks{WideRoots: true, Hidden: true},
		Layout:      LayoutContext,
		Placement:   PlaceUserMessage,
		Budget:      Limits{Total: wholeTotal},
		Resolver:    Resolver{Delivery: DeliverBody, ChangedWhen: ChangedByHash, RootFirst: true},
	}
}

// opencodeOptions are the rules of opencode 1.18.34 (packages/opencode/src/session/instruction.ts, the same in
// anomalyco/opencode 5a03e299): of the tree the files of one name, the nearest first, behind one of the user's.
func opencodeOptions(at Places) Options {
	o := Options{
		Preset:       PresetOpencode,
		Names:        []string{"AGENTS.md"},
		Otherwise:    [][]string{{"CLAUDE.md"}, {"CONTEXT.md"}},
		NearestFirst: true,
		Markers:      []string{".git"},
		Checks:       Checks{WideRoots: true, Hidden: true},
		Layout:       LayoutUntrimmed,
		Placement:    PlaceSystemMessage,
		Budget:       Limits{Total: wholeTotal},
		Resolver:     Resolver{Delivery: DeliverBody, ChangedWhen: ChangedByHash},
	}
	config := firstAbsolute(at.ConfigHome, filepath.Join(at.Home, ".config"))
	if home := firstAbsolute(at.Home); home != "" && Within(home, config) {
		rest := filepath.ToSlash(strings.Trim(config[len(home):], string(filepath.Separator)))
		o.GlobalDir, o.GlobalNames = home, []string{path.Join(rest, "opencode/AGENTS.md"), ".claude/CLAUDE.md"}
	} else if config != "" {
		o.GlobalDir, o.GlobalNames = filepath.Join(config, "opencode"), []string{"AGENTS.md"}
	}
	return o
}

// cursorOptions are the rules of Cursor's documentation (cursor.com/docs/rules, read in November 2026): AGENTS.md of
// each directory, also of those that are touched, .cursorrules, and the .mdc files in .cursor/rules by their front
// matter. How Cursor writes them into a prompt is not published, so the layout is Grapnel's.
func cursorOptions(Places) Options {
	o := defaultOptions(Places{})
	o.Preset = PresetCursor
	o.Names, o.LocalNames, o.AllNames = []string{"AGENTS.md", ".cursorrules"}, nil, true
	o.Rules = Rules{Dir: ".cursor/rules", Suffixes: []string{".mdc"}}
	o.Markers, o.GlobalDir, o.GlobalNames = []string{".git"}, "", nil
	return o
}

func (o Options) common(at Places) Options {
	o.Home, o.ConfigDirs = firstAbsolute(at.Home), at.configDirs()
	o.Trust, o.Untrusted = TrustAll, cmp.Or(o.Untrusted, UntrustedNames)
	o.Imports = cmp.Or(o.Imports, ImportOff)
	o.EmptyOverride.Project = cmp.Or(o.EmptyOverride.Project, OverrideFallsThrough)
	o.EmptyOverride.Global = cmp.Or(o.EmptyOverride.Global, OverrideFallsThrough)
	o.Resolver.MaxFiles, o.Resolver.MaxFile, o.Resolver.MaxEvent = 8, 8<<10, 16<<10
	return o.unshared()
}
