package option

import (
	"fmt"
	"path/filepath"
	"slices"
)

// The numbers of the default preset.
const (
	defaultFileBytes   = 32 << 10
	defaultTotalBytes  = 32 << 10
	defaultFiles       = 32
	defaultFloor       = 1 << 10
	defaultGlobalFloor = 4 << 10

	defaultNestedFiles = 8
	defaultNestedFile  = 8 << 10
	defaultNestedEvent = 16 << 10
)

// The numbers of the other presets.
const (
	codexBytes   = 32 << 10
	codeliaBytes = 256 << 10
	codeliaFiles = 16
)

// Places are the user's folders, each absolute or empty. A folder that is not
// absolute counts as not given.
type Places struct {
	// Home is the home folder.
	Home string
	// ConfigHome is the folder of configuration; below Home if it is empty.
	ConfigHome string
	// CodexHome is the folder of the tool codex; below Home if it is empty.
	CodexHome string
}

// configHome is the folder of configuration, or "" where that is unknown.
func (p Places) configHome() string { return firstAbsolute(p.ConfigHome, inHome(p.Home, ".config")) }

// codexHome is the folder of codex, likewise.
func (p Places) codexHome() string { return firstAbsolute(p.CodexHome, inHome(p.Home, ".codex")) }

// configDirs are the folders in which markers do not count. One that is moved
// by the environment does not make the usual one a source tree.
func (p Places) configDirs() []string {
	dirs := []string{}
	for _, dir := range []string{p.ConfigHome, p.CodexHome, inHome(p.Home, ".config"), inHome(p.Home, ".codex")} {
		if dir = firstAbsolute(dir); dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// inHome joins where there is something to join to.
func inHome(home, name string) string {
	if home == "" {
		return ""
	}
	return filepath.Join(home, name)
}

// firstAbsolute returns the first absolute path, cleaned, or "".
func firstAbsolute(paths ...string) string {
	for _, path := range paths {
		if filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
	}
	return ""
}

// Default returns the options of the default preset without the user's own
// files, to be changed by the caller.
func Default() Set { return defaultOptions(Places{}) }

// ForPreset returns the options of a preset for a user, to be changed by the
// caller. The error names the presets that there are.
func ForPreset(name Preset, at Places) (Set, error) {
	switch name {
	case PresetDefault:
		return defaultOptions(at), nil
	case PresetCodex:
		return codexOptions(at), nil
	case PresetCodelia:
		return codeliaOptions(at), nil
	default:
		return Set{}, fmt.Errorf("unknown preset %q, want %s, %s or %s", name, PresetDefault, PresetCodex, PresetCodelia)
	}
}

// defaultOptions are Grapnel's own.
func defaultOptions(at Places) Set {
	o := Set{
		Preset:        PresetDefault,
		Names:         []string{"AGENTS.override.md", "AGENTS.md"},
		LocalNames:    []string{"AGENTS.local.md"},
		EmptyOverride: EmptyOverride{Project: OverrideFallsThrough, Global: OverrideFallsThrough},
		Markers:       []string{".git", ".jj", ".hg"},
		GlobalNames:   []string{"AGENTS.override.md", "AGENTS.md"},
		Checks:        Checks{Normal: true, Twins: true, Stubs: true, NearMisses: true, WideRoots: true, Hidden: true},
		Layout:        LayoutDelimited,
		Placement:     PlaceSystem,
		Budget: Limits{
			File: defaultFileBytes, Total: defaultTotalBytes, Files: defaultFiles,
			Floor: defaultFloor, GlobalFloor: defaultGlobalFloor,
		},
		Resolver: Resolver{Delivery: DeliverBody, ChangedWhen: ChangedByHash},
	}
	if config := at.configHome(); config != "" {
		o.GlobalDir = filepath.Join(config, "grapnel")
	}
	return o.common(at)
}

// codexOptions give byte for byte what users of codex are used to.
func codexOptions(at Places) Set {
	return Set{
		Preset:        PresetCodex,
		Names:         []string{"AGENTS.override.md", "AGENTS.md"},
		EmptyOverride: EmptyOverride{Project: OverrideShadows, Global: OverrideFallsThrough},
		Markers:       []string{".git"},
		GlobalDir:     at.codexHome(),
		GlobalNames:   []string{"AGENTS.override.md", "AGENTS.md"},
		Layout:        LayoutJoined,
		Placement:     PlaceUserMessage,
		Budget:        Limits{Total: codexBytes},
		Resolver:      Resolver{Delivery: DeliverOff, ChangedWhen: ChangedNeverResolved},
	}.common(at)
}

// codeliaOptions give byte for byte what users of codelia are used to.
func codeliaOptions(at Places) Set {
	return Set{
		Preset:        PresetCodelia,
		Names:         []string{"AGENTS.md"},
		EmptyOverride: EmptyOverride{Project: OverrideFallsThrough, Global: OverrideFallsThrough},
		Markers:       []string{".codelia", ".git", ".jj"},
		Layout:        LayoutTitled,
		Placement:     PlaceSystemMessage,
		Budget:        Limits{Total: codeliaBytes, Files: codeliaFiles},
		Resolver:      Resolver{Delivery: DeliverReminder, ChangedWhen: ChangedByTimeOrHash, RootFirst: true},
	}.common(at)
}

// common adds what all presets share.
func (o Set) common(at Places) Set {
	o.Home, o.ConfigDirs = firstAbsolute(at.Home), at.configDirs()
	o.Trust, o.Untrusted = TrustAll, UntrustedNames
	o.Resolver.MaxFiles, o.Resolver.MaxFile, o.Resolver.MaxEvent = defaultNestedFiles, defaultNestedFile, defaultNestedEvent
	for _, list := range o.lists() {
		if *list == nil {
			*list = []string{}
		}
	}
	return o
}
