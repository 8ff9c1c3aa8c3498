package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/lazyregexp"
)

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

// printPinnedFiles shows what to add by hand, and what no checksum covers.
func (a *app) printPinnedFiles(list []pinned) {
	t := newTable("files beside them", "plugin|state|file")
	for _, p := range list {
		for _, f := range p.Files {
			t.add(p.Plugin, f.State, f.Path)
		}
	}
	a.printTable(t)
	for _, p := range list {
		if slices.ContainsFunc(p.Files, func(f pinnedFile) bool { return f.State != pinSame }) {
			a.printf("\nset by hand, in the plugin %s:\n  pins:\n", clean(p.Plugin))
			for _, f := range p.Files {
				a.printf("    %q: %q\n", clean(f.Path), f.SHA256)
			}
		}
	}
	for _, p := range list {
		if p.Imports {
			a.printf("\n%s is a script: no checksum covers the modules that it imports, so let nobody else write there\n", clean(p.Plugin))
		}
	}
}
