package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/internal/words"
)

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
			return usagef("%s: the link leads in a circle%s", next, linkHint)
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
