package skillset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/sdk"
)

const skillFile = "SKILL.md"

// directory adds the skills of one directory, by name, unless it was searched under another name.
func (r *resolver) directory(base *root, at place) {
	if real, err := filepath.EvalSymlinks(at.path()); err == nil {
		if r.visited[real] {
			return
		}
		r.visited[real] = true
	}
	if len(r.visited) > maxDirectories {
		r.report(at.path(), problemf(CodeTooMany, "more than %d directories of skills; this one is omitted", maxDirectories))
		return
	}
	names, err := list(base, at.rel)
	if err != nil {
		r.report(at.path(), r.openError(at, err, r.boundOf(at)))
		return
	}
	if len(names) > maxEntries {
		r.report(at.path(), problemf(CodeTooMany, "more than %d entries in one directory; all of it is omitted", maxEntries))
		return
	}
	for _, name := range names {
		if r.options.Keep == nil || r.options.Keep(name) {
			r.skill(base, at.below(name))
		}
	}
}

// list returns the names in a directory that may be skills, sorted; more than maxEntries if there are too many.
func list(base *root, rel string) ([]string, error) {
	f, err := base.Open(rel)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return nil, errNotRegular
	}
	entries, err := f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		isDirectory := e.IsDir() || e.Type() == fs.ModeSymlink
		if len(entries) > maxEntries || isDirectory && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// skill adds the skill in a directory, if there is one.
func (r *resolver) skill(base *root, at place) {
	file := filepath.Join(at.path(), skillFile)
	if !r.exists(file) && !r.dangling(file) {
		r.misplaced(base, at)
		return
	}
	info := r.set.seen[len(r.set.seen)-1].info
	if len(r.set.Skills) == maxSkills {
		r.report(file, problemf(CodeTooMany, "more than %d skills; this one is omitted", maxSkills))
		return
	}
	text, p := r.read(base, at)
	if p == nil {
		p = r.take(at, info, text)
	}
	if p != nil {
		r.report(file, p)
	}
}

// misplaced reports what looks like a skill in a directory without one: a file with another spelling, or skills further down.
func (r *resolver) misplaced(base *root, at place) {
	if path := misspelt(at.path()); path != "" {
		r.report(path, problemf(CodeMisplaced, misspeltDetail))
		return
	}
	names, _ := list(base, at.rel) // what cannot be read holds none
	for _, name := range names[:min(len(names), maxBelow)] {
		path := filepath.Join(at.path(), name, skillFile)
		if _, err := os.Stat(path); err == nil {
			r.report(path, problemf(CodeMisplaced, deepDetail))
		}
	}
}

const (
	maxBelow       = 64 // directories that are looked at in one that is not a skill's
	misspeltDetail = "a skill's file is called SKILL.md, in capital letters; this one is not read"
	deepDetail     = "a skill stands directly in a directory of skills; this one is a directory further down, where no agent looks"
)

// misspelt returns the path of a SKILL.md with other letters; empty if there is none.
func misspelt(directory string) string {
	for _, name := range []string{"skill.md", "Skill.md", "SKILL.MD", "Skill.MD", "skill.MD"} {
		if _, err := os.Stat(filepath.Join(directory, name)); err == nil {
			return filepath.Join(directory, name)
		}
	}
	return ""
}

// read reads a SKILL.md within its directory.
func (r *resolver) read(base *root, at place) (string, *FileError) {
	directory, err := base.OpenRoot(at.rel)
	if err != nil {
		return "", r.openError(at, err, r.boundOf(at))
	}
	defer func() { _ = directory.Close() }()
	raw, p := readText(directory, skillFile, maxSkill)
	if p != nil && !p.gone && p.Code == CodeReadError {
		// This link is bounded by the skill's real directory.
		if real, err := filepath.EvalSymlinks(at.path()); err == nil {
			return "", r.openError(place{"", real, skillFile}, errors.New(p.Detail), "the skill's directory")
		}
	}
	if r.bytes += len(raw); p == nil && r.bytes > maxTotal {
		return "", problemf(CodeTooLarge, "all skills together have more than %d bytes; this one is omitted", maxTotal)
	}
	return raw, p
}

// hiddenLine is the first line of a text with a character that hides; 0 if only an escape has one.
func hiddenLine(text string) int {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if _, hidden := reveal(line); hidden > 0 {
			return number
		}
	}
	return 0
}

func (r *resolver) take(at place, info fs.FileInfo, text string) *FileError {
	h, body, p := parseSkill(text, filepath.Base(at.rel))
	if p != nil {
		return p
	}
	if r.options.Keep != nil && !r.options.Keep(h.slug) {
		return &FileError{gone: true} // excluded by its name
	}
	path := filepath.Join(at.path(), skillFile)
	if i, dup := r.owner[h.slug]; dup {
		// The same file under two names, as with a linked directory, is not a duplicate.
		first := &r.set.Skills[i]
		if known, err := os.Stat(filepath.Join(first.Dir, skillFile)); info == nil || err != nil || !os.SameFile(known, info) {
			return problemf(CodeDuplicate, "the skill %s is taken from %s", h.slug, sdk.PlainName(first.Label))
		}
		return &FileError{gone: true}
	}
	for _, note := range h.notes {
		r.report(path, note)
	}
	if h.notForModels {
		return problemf(CodeNotForModels, "its author keeps it from being called by models")
	}
	hidden := h.hidden + notUTF8(text) - notUTF8(body) // the YAML parser itself replaces what is not UTF-8
	body, more := reveal(body)
	if hidden += more; hidden > 0 {
		r.report(path, lined(hiddenLine(text), problemf(CodeHidden, "%s replaced", words.Count(hidden, "character that hides or is not UTF-8 was", "characters that hide or are not UTF-8 were"))))
	}
	if len(h.badGlobs) > 0 {
		r.report(path, lined(h.globLine, problemf(CodePaths, "patterns that cannot be read, by number: %s", strings.Trim(fmt.Sprint(h.badGlobs), "[]"))))
	}
	label := path
	if rel, ok := r.set.Rel(path); ok {
		label = rel
	}
	r.owner[h.slug] = len(r.set.Skills)
	r.set.Skills = append(r.set.Skills, Skill{
		Slug: h.slug, Description: h.description, Globs: h.globs, Body: body, Dir: at.path(), Label: label, at: at,
	})
	return nil
}

// readText reads a regular text file of at most limit bytes.
func readText(directory *root, name string, limit int64) (string, *FileError) {
	f, err := directory.Open(name)
	if err != nil {
		return "", problemOf(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", problemOf(err)
	case !info.Mode().IsRegular():
		return "", problemf(CodeNotRegular, "is a directory")
	case info.Size() > limit:
		return "", problemf(CodeTooLarge, "has %d bytes; at most %d are read", info.Size(), limit)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1)) // the size need not be true
	switch {
	case err != nil:
		return "", problemOf(err)
	case int64(len(raw)) > limit:
		return "", problemf(CodeTooLarge, "has more than the %d bytes that are read", limit)
	case slices.Contains(raw, 0):
		return "", problemf(CodeBinary, "holds a NUL, so it is not text")
	}
	return string(raw), nil
}

// FileError says why a skill or a file of it cannot be used.
type FileError struct {
	Code   Code
	Detail string // a sentence without text of any file
	gone   bool   // the file does not exist, which needs no diagnostic
	line   int    // of the file; 0 if unknown

	mendable bool // quotes around the values may help
}

func (e *FileError) Error() string { return e.Detail }

// ReadFile returns a text file of a skill's directory, normalised. The name is relative, with slashes. Errors are
// [*FileError].
func ReadFile(s *Skill, name string) (string, error) {
	name = filepath.Clean(filepath.FromSlash(name))
	if !filepath.IsLocal(name) || name == "." {
		return "", problemf(CodeReadError, "is not a path below the skill's directory")
	}
	base, err := openBase(s.at.boundary, s.at.base, nil)
	if err != nil {
		return "", problemOf(err)
	}
	defer func() { _ = base.Close() }()
	directory, err := base.OpenRoot(s.at.rel)
	if err != nil {
		return "", problemOf(err)
	}
	defer func() { _ = directory.Close() }()
	raw, p := readText(directory, name, maxSkill)
	switch {
	case p != nil:
		return "", p
	case !utf8.ValidString(raw):
		return "", problemf(CodeBinary, "is not UTF-8, so it is not text")
	}
	shown, _ := reveal(normalise(raw))
	return shown, nil
}
