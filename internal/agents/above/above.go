// Package above finds what is installed above Grapnel's hooks: mods, plugins, extensions, managed hooks and settings that can
// outvote, hide or change what those say. It reads the files that agents' descriptions name ([agent.Above]) and runs nothing.
// Files may be hostile: 1 MiB of regular ones is read, and 256 of a pattern. What cannot be read is a row.
//
// Stability: internal.
package above

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// Find finds what is above the hooks of an agent, for a user's home directory and a project. Env looks up a variable.
func Find(a *agent.Agent, home, project string, env func(string) string) []agent.Above {
	return (&finder{agent: a, home: home, project: project, env: env}).find()
}

type finder struct {
	agent         *agent.Agent
	home, project string
	root          string // stands before absolute paths; empty but in tests
	env           func(string) string
	rows          []agent.Above
	left          int // bytes of modules that may still be read
}

func (f *finder) find() []agent.Above {
	f.rows, f.left = []agent.Above{}, 16*mostBytes
	for i := range f.agent.Above {
		a := &f.agent.Above[i]
		if a.Kind == agent.Mods {
			f.mods(a)
			continue
		}
		for _, pattern := range a.Files {
			for _, file := range f.glob(pattern) {
				f.file(a, file, filepath.IsAbs(pattern))
			}
		}
	}
	return f.rows
}

const (
	mostBytes = 1 << 20
	mostFiles = 256
)

// glob returns the files of patterns.
func (f *finder) glob(patterns ...string) (all []string) {
	for _, pattern := range patterns {
		dir, below := f.root, pattern
		switch in, rest, _ := strings.Cut(pattern, "/"); {
		case in == ".":
			dir, below = f.project, rest
		case in == "~" && f.agent.Install.Home != "" && f.env(f.agent.Install.Home) != "":
			_, below, _ = strings.Cut(rest, "/")
			dir = f.env(f.agent.Install.Home)
		case in == "~":
			dir, below = f.home, rest
		case !filepath.IsAbs(pattern): // another system's
			continue
		}
		found, _ := filepath.Glob(filepath.Join(literal.Replace(dir), filepath.FromSlash(below)))
		if len(found) > mostFiles {
			f.unread(agent.Above{ID: pattern, Kind: "files", Path: dir}, errors.New("there are more than 256"))
		}
		all = append(all, found[:min(len(found), mostFiles)]...)
	}
	return all
}

// unread adds a row for what could do anything.
func (f *finder) unread(row agent.Above, err error) {
	row.Events, row.Can, row.Before = []string{}, []string{"do anything, since it was not read: " + fsview.Cause(err)}, true
	if !slices.ContainsFunc(f.rows, func(r agent.Above) bool { return r.Kind == row.Kind && r.Path == row.Path && r.ID == row.ID }) {
		f.rows = append(f.rows, row)
	}
}

// read returns the text of a regular file, which must be below a directory unless that is empty.
func read(file, below string) (string, error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(below, real); below != "" && (err != nil || !filepath.IsLocal(rel)) {
		return "", errors.New("it is outside of its directory")
	}
	dir, err := fsview.OS{}.OpenDir(filepath.Dir(real))
	if err != nil {
		return "", err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	text, err := fsview.ReadText(dir, filepath.Base(real), mostBytes+1)
	if len(text) > mostBytes {
		err = errors.New("it is longer than 1 MiB")
	}
	return text, err
}

// decode reads the file of a row, which may be missing; one that cannot be read is added.
func (f *finder) decode(row agent.Above, below string, into any) bool {
	text, err := read(row.Path, below)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	data := []byte(strings.TrimPrefix(text, "\ufeff") + "\n")
	if err == nil && filepath.Ext(row.Path) == ".toml" {
		err = toml.Unmarshal(data, into)
	} else if err == nil {
		if data, err = hujson.Standardize(data); err == nil {
			err = json.Unmarshal(data, into)
		}
	}
	if err != nil {
		f.unread(row, err)
	}
	return err == nil
}

// file adds rows for a plugin, or for a file with hooks, settings or a list of plugins.
func (f *finder) file(a *agent.AbovePlace, file string, managed bool) {
	row := agent.Above{ID: filepath.Base(strings.TrimSuffix(file, filepath.FromSlash("/hooks/hooks.json"))), Kind: a.Kind, Path: file, Events: []string{}, Before: a.Last}
	if managed {
		row.Kind = "managed hooks"
	}
	if ext := filepath.Ext(file); ext == ".ts" || ext == ".js" {
		f.program(a, row)
		return
	}
	var values map[string]any
	f.decode(row, "", &values)
	for _, setting := range slices.Sorted(maps.Keys(a.Off)) {
		var v any = values
		for name := range strings.SplitSeq(setting, "/") {
			in, _ := v.(map[string]any)
			v = in[name]
		}
		if on, _ := v.(bool); on {
			f.rows = append(f.rows, agent.Above{ID: filepath.Base(setting), Kind: "setting", Path: file, Events: []string{}, Can: []string{a.Off[setting]}, Before: true})
		}
	}
	hooks, _ := values["hooks"].(map[string]any)
	for _, event := range slices.Sorted(maps.Keys(hooks)) {
		if _, known := f.agent.Events[event]; known {
			row.Events = append(row.Events, event)
		}
	}
	if row.Can = can(a.Powers, row.Events); len(row.Can) > 0 {
		f.rows = append(f.rows, row)
	}
	list, _ := values[a.List].([]any)
	for _, entry := range list {
		if with, ok := entry.([]any); ok && len(with) > 0 { // its options follow
			entry = with[0]
		}
		if row.ID, _ = entry.(string); row.ID != "" {
			f.unread(row, errors.New("it is a package"))
		}
	}
}

// program adds a row for a plugin that is one file.
func (f *finder) program(a *agent.AbovePlace, row agent.Above) {
	text, err := read(row.Path, "")
	row.Events = named(a.Powers, plain(text))
	switch row.Can = can(a.Powers, row.Events); {
	case pluginfile.Is(f.agent, text):
	case err != nil:
		f.unread(row, err)
	case len(row.Can) == 0:
		f.unread(row, errors.New("it names no event itself"))
	default:
		f.rows = append(f.rows, row)
	}
}
