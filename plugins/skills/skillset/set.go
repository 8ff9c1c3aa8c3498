package skillset

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Skill is one skill.
type Skill struct {
	// Slug is the name, exactly; Description one line.
	Slug, Description string
	// Globs are the files that the skill is about; usually none.
	Globs []Glob
	// Body is the text behind the front matter, normalised.
	Body string
	// Dir is the skill's folder, an absolute path.
	Dir string
	// Label is the path of its SKILL.md from the root of the source tree with
	// slashes, or the absolute one of a skill from elsewhere. Neither path is fit
	// for printing: see [PrintPath].
	Label string

	at place
}

// Matches reports whether one of the globs stands for a path as [Set.Rel] gives
// it.
func (s *Skill) Matches(rel string) bool {
	return slices.ContainsFunc(s.Globs, func(g Glob) bool { return g.Match(rel) })
}

// place is a folder below one that bounds what links may lead to, which may itself
// have to stay within a boundary.
type place struct{ boundary, base, rel string }

func (p place) path() string { return filepath.Join(p.base, p.rel) }

// below is a folder or file in this one.
func (p place) below(name string) place { return place{p.boundary, p.base, filepath.Join(p.rel, name)} }

// Set is what was found for a working folder. It is immutable and safe for
// concurrent use.
type Set struct {
	// Root is the root of the source tree, a real path; "" without a working
	// folder.
	Root string
	// Skills are sorted by slug, which is unique.
	Skills      []Skill
	Diagnostics []Diagnostic

	// named is the root as the working folder's path was written, or "".
	named string
	seen  []look
}

// Find returns the skill of a slug, or nil.
func (s *Set) Find(slug string) *Skill {
	i, ok := slices.BinarySearchFunc(s.Skills, slug, func(sk Skill, slug string) int { return strings.Compare(sk.Slug, slug) })
	if !ok {
		return nil
	}
	return &s.Skills[i]
}

// Rel returns an absolute path as globs see it: with slashes, from the root of
// the source tree, which itself is ".". It is not ok for a path outside. Only
// names are looked at, no file.
func (s *Set) Rel(path string) (string, bool) {
	for _, root := range []string{s.Root, s.named} {
		if root == "" {
			continue
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// look is one path that the set depends on, and what it led to; nil for nothing.
type look struct {
	path string
	info fs.FileInfo
}

// Fresh reports whether [Resolve] would look at the same files: every one that
// decided anything has the same identity, size and time as then. It opens
// nothing.
func (s *Set) Fresh(view FS) bool {
	return !slices.ContainsFunc(s.seen, func(l look) bool {
		info, err := view.Stat(l.path)
		if err != nil || l.info == nil {
			return err == nil || l.info != nil
		}
		return !os.SameFile(info, l.info) || info.Size() != l.info.Size() || !info.ModTime().Equal(l.info.ModTime()) || info.Mode() != l.info.Mode()
	})
}

// unsettled is the span within which a file may change twice and keep its time,
// on the coarsest file systems.
const unsettled = 2 * time.Second

// Settled reports whether the set was resolved long enough after the last change
// to its files that [Set.Fresh] would see the next one. now is the time at which
// it was resolved.
func (s *Set) Settled(now time.Time) bool {
	return !slices.ContainsFunc(s.seen, func(l look) bool {
		return l.info != nil && now.Sub(l.info.ModTime()).Abs() < unsettled
	})
}
