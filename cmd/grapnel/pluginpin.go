package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

type pinResult struct {
	Plugins []pinned `json:"plugins" jsonschema:"the plugins with a command"`
	Written string   `json:"written" jsonschema:"the file that was changed; empty if none was"`
}

type pinned struct {
	Plugin string   `json:"plugin"`
	Path   string   `json:"path"   jsonschema:"the program that was found"`
	SHA256 string   `json:"sha256" jsonschema:"its checksum"`
	State  pinState `json:"state"  jsonschema:"how that compares with the configuration"`
	// Files are what "pins" can hold besides.
	Files   []pinnedFile `json:"files"   jsonschema:"the script that the program interprets, the lock file of its packages, and what pins names"`
	Imports bool         `json:"imports" jsonschema:"whether it is a script: no checksum covers the modules that it imports"`
}

type pinState string

const (
	pinUnpinned pinState = "unpinned"
	pinSame     pinState = "same"
	pinChanged  pinState = "changed"
)

// pinFlags: a command that changes the operator's file does not do it by surprise.
type pinFlags struct {
	Write bool `flag:"write" usage:"write the checksums into the configuration file"`
}

// pluginPin hashes all programs before anything is written.
func (a *app) pluginPin(_ context.Context, f *pinFlags, names []string) error {
	from, err := a.configOrigin()
	if err != nil {
		return err
	}
	if from.Path == "" {
		return usagef("there is no configuration file (%s), and the built-in plugins need no checksum; name a file with --config", from.Why)
	}
	result := pinResult{}
	if result.Plugins, err = programs(from.Path, names); err != nil {
		return err
	}
	if f.Write {
		if result.Written, err = writePins(from.Path, result.Plugins); err != nil {
			return err
		}
	}
	return a.print(result, func() { a.printPins(&result, f.Write) })
}

func programs(path string, names []string) ([]pinned, error) {
	cfg, err := config.Loader{AllowUnpinned: true}.Load(path) // this command pins them
	if err != nil {
		return nil, err
	}
	var known []string
	list := []pinned{}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		known = append(known, p.Name)
		asked := slices.Contains(names, p.Name)
		switch {
		case asked && p.Command == "":
			return nil, usagef("the plugin %s has no command: there is nothing to pin", p.Name)
		case p.Command == "" || len(names) > 0 && !asked:
			continue
		}
		sum, err := hashPath(p.Path)
		if err = cmp.Or(p.Absent(), err); err != nil {
			return nil, unable(fmt.Errorf("plugin %s: its program cannot be read: %w", p.Name, err))
		}
		script := scriptOf(p)
		files, err := beside(p, script)
		if err != nil {
			return nil, err
		}
		list = append(list, pinned{p.Name, p.Path, sum, stateOf(p.SHA256, sum), files, script != ""})
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usagef("no plugin %q is declared%s", name, suggest.DidYouMean(name, known))
		}
	}
	return list, nil
}

// writePins changes the file if a checksum did, and returns its name then.
func writePins(path string, programs []pinned) (written string, err error) {
	sums := map[string]config.Sums{}
	for _, p := range programs {
		if s := p.toWrite(); s.Program != "" || len(s.Files) > 0 {
			sums[p.Plugin] = s
		}
	}
	if len(sums) == 0 {
		return "", nil
	}
	return path, editFile(path, func(data []byte) ([]byte, error) { return config.Pin(data, sums) })
}

// toWrite are the checksums that the configuration lacks.
func (p *pinned) toWrite() config.Sums {
	s := config.Sums{Files: map[string]string{}}
	if p.State != pinSame {
		s.Program = p.SHA256
	}
	for _, f := range p.Files {
		if f.State != pinSame {
			s.Files[f.Path] = f.SHA256
		}
	}
	return s
}

func (a *app) printPins(r *pinResult, write bool) {
	if len(r.Plugins) == 0 {
		a.println("no plugin has a command: there is nothing to pin")
		return
	}
	t, files := newTable("programs", "plugin|state|program"), newTable("files beside them", "plugin|state|file")
	var todo strings.Builder
	for _, p := range r.Plugins {
		t.add(p.Plugin, p.State, p.Path)
		for _, f := range p.Files {
			files.add(p.Plugin, f.State, f.Path)
		}
		p.writeLines(&todo)
	}
	a.printTable(t)
	a.printTable(files)
	switch {
	case r.Written != "":
		a.printf("\nwrote %s\n", clean(r.Written))
	case todo.Len() == 0 || write:
		a.println("\nthe configuration is up to date")
	default:
		a.printf("\nadd to the configuration, or use --write:\n%s", todo.String())
	}
	for _, p := range r.Plugins {
		if p.Imports {
			a.printf("\n%s is a script: no checksum covers the modules that it imports, so let nobody else write there\n", clean(p.Plugin))
		}
	}
}

// writeLines writes what the plugin's part of the configuration lacks.
func (p *pinned) writeLines(b *strings.Builder) {
	s := p.toWrite()
	if s.Program == "" && len(s.Files) == 0 {
		return
	}
	fmt.Fprintf(b, "  # %s\n", p.Plugin)
	if s.Program != "" {
		fmt.Fprintf(b, "  sha256: %q\n", s.Program)
	}
	for i, path := range slices.Sorted(maps.Keys(s.Files)) {
		if i == 0 {
			b.WriteString("  pins:\n")
		}
		fmt.Fprintf(b, "    %q: %q\n", clean(path), s.Files[path])
	}
}

// interpreters are programs that run what their arguments name.
var interpreters = lazyregexp.New(`^(?:node|nodejs|bun|deno|python[0-9.]*|pypy[0-9.]*|ruby|perl|php[0-9.]*|java|lua[0-9.]*|bash|dash|sh|Rscript|uv|npx|tsx)$`)

func lockFiles() []string {
	return []string{"package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "uv.lock", "poetry.lock", "requirements.txt"}
}

// pinnedFile is a file beside a program that "pins" can hold.
type pinnedFile struct {
	Path   string   `json:"path"`
	SHA256 string   `json:"sha256"`
	State  pinState `json:"state"  jsonschema:"how that compares with the configuration's pins"`
}

func hashPath(path string) (string, error) {
	h := sha256.New()
	err := hashFile(h, path, math.MaxInt64)
	return hex.EncodeToString(h.Sum(nil)), err
}

func stateOf(configured, sum string) pinState {
	switch configured {
	case "":
		return pinUnpinned
	case sum:
		return pinSame
	}
	return pinChanged
}

// scriptOf is the script that a plugin runs: its program, or the first file in the arguments of an interpreter. Others
// would not be found, since a plugin has a working directory of its own.
func scriptOf(p *config.Plugin) string {
	if head, err := readHead(p.Path); err == nil && head == "#!" {
		return p.Path
	}
	if !interpreters().MatchString(filepath.Base(p.Path)) {
		return ""
	}
	for _, arg := range p.Args {
		if info, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) && info.Mode().IsRegular() {
			return arg
		}
	}
	return ""
}

// beside are the files that a script's checksum does not cover and "pins" can: the script itself, if the program is its
// interpreter, and the lock file of its packages, in its directory or the one above; and all that are pinned already.
func beside(p *config.Plugin, script string) ([]pinnedFile, error) {
	var paths []string
	if script != "" && script != p.Path {
		paths = append(paths, script)
	}
	if script != "" {
		paths = append(paths, locksNear(filepath.Dir(script))...)
	}
	for path := range p.Pins {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	files := []pinnedFile{}
	for _, path := range slices.Compact(paths) {
		sum, err := hashPath(path)
		if err != nil {
			return nil, unable(fmt.Errorf("plugin %s: a file to pin cannot be read: %w", p.Name, err))
		}
		files = append(files, pinnedFile{path, sum, stateOf(p.Pins[path], sum)})
	}
	return files, nil
}

func locksNear(dir string) (found []string) {
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		for _, name := range lockFiles() {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				found = append(found, path)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}
