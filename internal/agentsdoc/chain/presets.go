package chain

import (
	"fmt"
	"path/filepath"
	"slices"
)

func defaultLimits() Limits {
	return Limits{File: 32 << 10, Total: 32 << 10, Files: 32, Floor: 1 << 10, GlobalFloor: 4 << 10}
}

// Places are the user's directories. One that is not absolute counts as empty.
type Places struct {
	Home       string
	ConfigHome string // defaults to .config in Home
	CodexHome  string // directory of the tool codex; defaults to .codex in Home
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
func Default() Options { return defaultOptions(Places{}) }

// ForPreset returns the options of a preset for a user. The error names the existing presets.
func ForPreset(name Preset, at Places) (Options, error) {
	switch name {
	case PresetDefault:
		return defaultOptions(at), nil
	case PresetCodex:
		return codexOptions(at), nil
	case PresetCodelia:
		return codeliaOptions(at), nil
	default:
		return Options{}, fmt.Errorf("unknown preset %q, want %s, %s or %s", name, PresetDefault, PresetCodex, PresetCodelia)
	}
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
		Budget:        defaultLimits(),
		Resolver:      Resolver{Delivery: DeliverBody, ChangedWhen: ChangedByHash},
	}
	if config := firstAbsolute(at.ConfigHome, filepath.Join(at.Home, ".config")); config != "" {
		o.GlobalDir = filepath.Join(config, "grapnel")
	}
	return o.common(at)
}

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
		Budget:        Limits{Total: 32 << 10},
		Resolver:      Resolver{Delivery: DeliverOff, ChangedWhen: ChangedNeverResolved},
	}.common(at)
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
	}.common(at)
}

func (o Options) common(at Places) Options {
	o.Home, o.ConfigDirs = firstAbsolute(at.Home), at.configDirs()
	o.Trust, o.Untrusted = TrustAll, UntrustedNames
	o.Resolver.MaxFiles, o.Resolver.MaxFile, o.Resolver.MaxEvent = 8, 8<<10, 16<<10
	for _, list := range o.lists() {
		if *list == nil {
			*list = []string{}
		}
	}
	return o
}
