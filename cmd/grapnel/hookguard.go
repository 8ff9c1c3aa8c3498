package main

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// settingsScopes are the scopes of the settings that an agent's event names; others have no hooks of ours.
//
//nolint:gochecknoglobals // an immutable table
var settingsScopes = map[string]agent.Scope{
	"user_settings": agent.User, "project_settings": agent.Project, "local_settings": agent.Local,
}

// misleading are variables of the environment that decide where a hook finds its gateway, what that is started with, or
// whether hooks are run.
//
//nolint:gochecknoglobals // an immutable table
var misleading = []string{
	"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "GRAPNEL_CONFIG", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SIMPLE",
	"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES",
}

func misleads(name string) bool { return slices.Contains(misleading, name) }

// refuseChange says why a change of an agent's settings must not hold in its session: it takes away, alters or switches off
// hooks that install wrote. What install and uninstall do themselves is on record before they do it.
func refuseChange(e *agent.Event) string {
	host, scope := install.Lookup(e.Host), settingsScopes[e.Source]
	if host == nil || scope == "" {
		return ""
	}
	home, _ := os.UserHomeDir() // without one the path is not found
	path := filepath.FromSlash(host.Path(scope, filepath.ToSlash(home), filepath.ToSlash(e.Dir), os.Getenv))
	if e.File != "" { // the file, or one beside it that is to replace it
		path = filepath.Join(filepath.Dir(e.File), filepath.Base(path))
	}
	data, err := readRegular(cmp.Or(e.File, path))
	if err != nil {
		return "Grapnel cannot read " + cmp.Or(e.File, path) + ", which may have hooks of its own: " + unwrapPath(err).Error()
	}
	installed := (&hookFile{real: realPath(path)}).readUndo()
	now, err := host.Parse(data)
	switch {
	case err != nil:
		return path + " cannot be judged, and could take away hooks of Grapnel: " + err.Error()
	case now.Flag("disableAllHooks"):
		return path + " switches off the hooks of Grapnel (disableAllHooks)"
	case slices.ContainsFunc(now.Environment(), misleads):
		return path + " sets a variable in env by which hooks would find another gateway, or not be run: " + strings.Join(misleading, ", ")
	case installed == nil:
		return ""
	}
	standing := now.Standing()
	gone := func(entry string) bool { return !slices.Contains(standing, entry) }
	if slices.ContainsFunc(installed.Hooks, gone) || len(installed.Hooks) == 0 && len(standing) == 0 {
		return path + " would lose hooks of Grapnel, or have them altered; a person can take them out with: grapnel uninstall " + host.Name + " --scope " + string(scope)
	}
	return ""
}

// hasTools reports whether an agent starts the gateway's MCP server, with plugins' tools, where an event happened.
func hasTools(e *agent.Event) bool {
	host := install.Lookup(e.Host)
	home, _ := os.UserHomeDir() // without one the path is not found
	for _, scope := range host.Scopes() {
		for _, place := range host.Places(scope, filepath.ToSlash(home), filepath.ToSlash(e.Dir), os.Getenv) {
			data, err := readRegular(filepath.FromSlash(place.Path))
			if err != nil || !bytes.Contains(data, []byte("grapnel")) {
				continue
			}
			doc, err := place.Parse(data)
			if err != nil {
				continue
			}
			if command := doc.Serves(); len(command) > 0 && (scope == agent.User || isOurs(command[0])) {
				return true
			}
		}
	}
	return false
}

// isOurs reports whether a program that a project's file names is grapnel: a repository may name any other one, or none.
func isOurs(program string) bool {
	own, err := findProgram("grapnel")
	if err != nil || program == "grapnel" { // which the PATH finds
		return program == "grapnel"
	}
	mine, err := os.Stat(own)
	if err != nil || !filepath.IsAbs(program) {
		return false
	}
	named, err := os.Stat(program)
	return err == nil && os.SameFile(mine, named)
}

// realPath is a path without links; the file itself, and directories above it, may be missing.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(realPath(dir), filepath.Base(path))
}

const mostLinks = 40 // as many as Linux follows

// staysInProject refuses a path below the working directory with a link that leads out of it: a project that somebody
// else wrote would decide which of the user's files is changed.
func staysInProject(path string) error {
	dir, err := os.Getwd()
	if err != nil {
		return unable(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return unable(err)
	}
	rest, err := filepath.Rel(dir, path)
	if err != nil {
		return unable(err)
	}
	separator := string(filepath.Separator)
	for at, links := real, 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, separator)
		next := filepath.Join(at, name)
		if !below(next, real) {
			return usagef("%s: a link leads out of the project, to %s%s", path, next, linkHint)
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // there are no links below it
		case err != nil:
			return usagef("%s: %w", next, unwrapPath(err))
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if err != nil {
			return usagef("%s: %w", next, unwrapPath(err))
		}
		if links++; links > mostLinks {
			return usagef("%s: the links form a cycle%s", next, linkHint)
		}
		if filepath.IsAbs(to) {
			if at = real; !below(to, real) && !below(to, dir) {
				return usagef("%s: the link leads out of the project, to %s%s", next, to, linkHint)
			}
			to = strings.TrimPrefix(to, words.If(below(to, real), real)+words.If(!below(to, real), dir))
		}
		rest = to + separator + rest
	}
	return nil
}

const linkHint = "; nothing was changed: put a file or a directory in its place, or install with --scope user"

// below reports whether a path is a directory or begins with it.
func below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}
