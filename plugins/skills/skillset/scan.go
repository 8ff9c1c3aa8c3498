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
)

// skillFile is the name of the file that makes a folder a skill.
const skillFile = "SKILL.md"

// folder takes in the skills of one folder, by name. One that was looked into
// under another name brings nothing new.
func (r *resolver) folder(base Root, at place) {
	if real, err := r.view.RealPath(at.path()); err == nil {
		if r.visited[real] {
			return
		}
		r.visited[real] = true
	}
	if len(r.visited) > maxFolders {
		r.report(at.path(), problemf(CodeTooMany, "more than %d folders of skills; this one is left out", maxFolders))
		return
	}
	names, err := list(base, at.rel)
	if err != nil {
		r.report(at.path(), r.openError(at, err, r.boundOf(at)))
		return
	}
	if len(names) > maxEntries {
		r.report(at.path(), problemf(CodeTooMany, "more than %d entries in one folder; all of it is left out", maxEntries))
		return
	}
	for _, name := range names {
		if r.options.Keep == nil || r.options.Keep(name) {
			r.skill(base, at.below(name))
		}
	}
}

// list returns the names in a folder that may be folders of skills, sorted; more
// than maxEntries where there are too many entries. A leading dot is nobody's.
func list(base Root, rel string) ([]string, error) {
	f, err := base.Open(rel)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	dir, ok := f.(fs.ReadDirFile)
	if info, err := f.Stat(); err != nil || !ok || !info.IsDir() {
		return nil, ErrNotRegular
	}
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		isFolder := e.IsDir() || e.Type() == fs.ModeSymlink
		if len(entries) > maxEntries || isFolder && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// skill takes in the skill in a folder, if there is one.
func (r *resolver) skill(base Root, at place) {
	file := filepath.Join(at.path(), skillFile)
	if !r.exists(file) && !r.dangling(file) {
		return // a folder of something else
	}
	slug := filepath.Base(at.rel)
	info := r.set.seen[len(r.set.seen)-1].info
	if i, dup := r.owner[slug]; dup {
		// The same file under two names, as with a linked folder, is no clash.
		if first := &r.set.Skills[i]; info == nil || !r.isFile(first, info) {
			r.report(file, problemf(CodeDuplicate, "the skill %s is taken from %s", slug, PrintPath(first.Label)))
		}
		return
	}
	if len(r.set.Skills) == maxSkills {
		r.report(file, problemf(CodeTooMany, "more than %d skills; this one is left out", maxSkills))
		return
	}
	text, p := r.read(base, at)
	if p == nil {
		p = r.take(at, slug, text)
	}
	if p != nil {
		r.report(file, p)
	}
}

// isFile reports whether a skill's SKILL.md is the file described.
func (r *resolver) isFile(s *Skill, info fs.FileInfo) bool {
	first, err := r.view.Stat(filepath.Join(s.Dir, skillFile))
	return err == nil && os.SameFile(first, info)
}

// read reads a SKILL.md, which no link may take out of its folder.
func (r *resolver) read(base Root, at place) (string, *problem) {
	folder, err := base.OpenRoot(at.rel)
	if err != nil {
		return "", r.openError(at, err, r.boundOf(at))
	}
	defer func() { _ = folder.Close() }()
	raw, p := readText(folder, skillFile, maxSkill)
	if p != nil && p.code == CodeReadError {
		// What bounds this link is the skill's folder, behind links itself.
		if real, err := r.view.RealPath(at.path()); err == nil {
			return "", r.openError(place{"", real, skillFile}, errors.New(p.detail), "the skill's folder")
		}
	}
	if r.bytes += len(raw); p == nil && r.bytes > maxTotal {
		return "", problemf(CodeTooLarge, "all skills together have more than %d bytes; this one is left out", maxTotal)
	}
	return raw, p
}

// take adds a skill if its text is in order.
func (r *resolver) take(at place, slug, text string) *problem {
	h, body, p := parseSkill(text)
	switch {
	case p != nil:
		return p
	case h.name != slug:
		return problemf(CodeName, "the name is not that of the folder")
	case h.notForModels:
		return problemf(CodeNotForModels, "its author keeps it from being called by models")
	}
	path := filepath.Join(at.path(), skillFile)
	body, hidden := reveal(body)
	if hidden += h.hidden; hidden > 0 {
		r.report(path, problemf(CodeHidden, "%d characters that hide or are not UTF-8 were replaced", hidden))
	}
	if len(h.badGlobs) > 0 {
		r.report(path, problemf(CodePaths, "patterns that cannot be read, by number: %s", strings.Trim(fmt.Sprint(h.badGlobs), "[]")))
	}
	label := path
	if rel, ok := r.set.Rel(path); ok {
		label = rel
	}
	r.owner[slug] = len(r.set.Skills)
	r.set.Skills = append(r.set.Skills, Skill{
		Slug: slug, Description: h.description, Globs: h.globs, Body: body, Dir: at.path(), Label: label, at: at,
	})
	return nil
}

// readText reads a regular file of at most limit bytes that is text.
func readText(folder Root, name string, limit int64) (string, *problem) {
	f, err := folder.Open(name)
	if err != nil {
		return "", problemOf(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", problemOf(err)
	case !info.Mode().IsRegular():
		return "", problemf(CodeNotRegular, "is a folder")
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

// maxFile bounds the bytes of a file beside SKILL.md.
const maxFile = 128 << 10

// FileError says why a file of a skill cannot be had.
type FileError struct {
	Code Code
	// Detail is a sentence for people, without text of any file.
	Detail string
}

// Error implements error.
func (e *FileError) Error() string { return e.Detail }

// ReadFile returns a text file of a skill's folder, normalised. The name is
// relative to the folder, with slashes. Errors are [*FileError].
func ReadFile(view FS, s *Skill, name string) (string, error) {
	name = filepath.Clean(filepath.FromSlash(name))
	if !filepath.IsLocal(name) || name == "." {
		return "", &FileError{CodeReadError, "is not a path below the skill's folder"}
	}
	base, err := openBase(view, s.at.boundary, s.at.base)
	if err != nil {
		return "", fileError(problemOf(err))
	}
	defer func() { _ = base.Close() }()
	folder, err := base.OpenRoot(s.at.rel)
	if err != nil {
		return "", fileError(problemOf(err))
	}
	defer func() { _ = folder.Close() }()
	raw, p := readText(folder, name, maxFile)
	switch {
	case p != nil:
		return "", fileError(p)
	case !utf8.ValidString(raw):
		return "", &FileError{CodeBinary, "is not UTF-8, so it is not text"}
	}
	text, _ := reveal(normalise(raw))
	return text, nil
}

// fileError makes an error of a problem.
func fileError(p *problem) error {
	if p.gone {
		return &FileError{CodeReadError, "does not exist"}
	}
	return &FileError{p.code, p.detail}
}
