package skillset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of one resolution, far above real use: they keep the cost of a hostile tree small.
const (
	maxLevels      = 64        // directories from the working directory up
	maxDirectories = 64        // directories that hold skills
	maxEntries     = 1024      // entries of one of them
	maxSkills      = 256       // skills of a set
	maxSkill       = 128 << 10 // bytes of a SKILL.md
	maxTotal       = 4 << 20   // bytes of all of them
	maxProblems    = 64        // diagnostics
)

// Options say where skills are looked for. The zero value looks nowhere.
type Options struct {
	Directories []string // hold skills, in order of precedence; relative ones in and above the working directory
	Markers     []string // names that make the nearest directory the root of a source tree
	// Boundary, if set, contains the working directory: no relative directory outside of it is read. Both are real
	// paths.
	Boundary string
	// Home is the user's home directory, where the search for markers ends: a home under version control is not a
	// source tree.
	Home string
	Keep func(slug string) bool // which slugs are opened; nil is all
	// Given are directories whose skills the agent lists for the model by itself: a skill with the same text is omitted.
	Given []string

	opening func(name string) // of tests, see root
}

// Resolve finds the skills for a working directory, an absolute path; without one only absolute directories are
// searched. What cannot be read is omitted with a diagnostic.
func Resolve(dir string, o Options) *Set {
	r := &resolver{options: o, set: &Set{}, owner: map[string]int{}, visited: map[string]bool{}}
	if filepath.IsAbs(dir) {
		r.locate(filepath.Clean(dir))
	}
	for _, directory := range o.Directories {
		if filepath.IsAbs(directory) {
			r.absolute(filepath.Clean(directory))
		} else {
			r.relative(filepath.Clean(directory))
		}
	}
	slices.SortFunc(r.set.Skills, func(a, b Skill) int { return strings.Compare(a.Slug, b.Slug) })
	for _, given := range o.Given {
		r.leave(Resolve(dir, Options{Directories: []string{given}, Markers: []string{".git"}, Boundary: o.Boundary, Home: o.Home}))
	}
	return r.set
}

// leave omits the skills that the agent gives.
func (r *resolver) leave(given *Set) {
	r.set.seen = append(r.set.seen, given.seen...)
	r.set.Skills = slices.DeleteFunc(r.set.Skills, func(s Skill) bool {
		same := given.Find(s.Slug)
		if same == nil || same.Body != s.Body || same.Description != s.Description {
			return false
		}
		r.report(filepath.Join(s.Dir, skillFile), problemf(CodeReadByAgent, "the agent lists it by itself, so it is not listed again"))
		return true
	})
}

type resolver struct {
	options Options
	set     *Set
	real    string // the working directory with links resolved, or ""
	owner   map[string]int
	visited map[string]bool // the real paths of searched directories
	bytes   int             // how much of the bound is used up
}

// report adds a diagnostic; the last one says that there are more.
func (r *resolver) report(path string, p *FileError) {
	if p.gone || len(r.set.Diagnostics) == maxProblems {
		return
	}
	if len(r.set.Diagnostics) == maxProblems-1 {
		p = problemf(CodeTooMany, "there are more diagnostics than the %d that are kept", maxProblems-1)
	}
	r.set.Diagnostics = append(r.set.Diagnostics, Diagnostic{Code: p.Code, Severity: p.Code.Severity(), Path: path, Line: p.line, Detail: p.Detail})
}

// exists looks at a path and remembers the result for Fresh.
func (r *resolver) exists(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	r.set.seen = append(r.set.seen, look{path, info})
	return info != nil
}

// locate finds the real working directory and the root of its source tree.
func (r *resolver) locate(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		r.exists(dir)
		if p := problemOf(err); !p.gone {
			r.report(dir, p)
		}
		return
	}
	if b := r.options.Boundary; b != "" && !within(b, real) {
		r.report(dir, problemf(CodeSymlinkEscape, "the working directory leads out of where it may be"))
		return
	}
	r.real = real
	r.set.Root = r.root()
	// The root by the name that the host uses, as far as the names agree.
	if rel, err := filepath.Rel(r.set.Root, real); err == nil && real != dir {
		switch {
		case rel == ".":
			r.set.named = dir
		case strings.HasSuffix(dir, string(filepath.Separator)+rel):
			r.set.named = strings.TrimSuffix(dir, string(filepath.Separator)+rel)
		}
	}
}

// root is the nearest directory with a marker, or the working directory.
func (r *resolver) root() string {
	home := r.options.Home
	if home != "" {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
	}
	for at, level := r.real, 0; level < maxLevels && (at != home || at == r.real); level++ {
		for _, marker := range r.options.Markers {
			if r.exists(filepath.Join(at, marker)) {
				return at
			}
		}
		parent := filepath.Dir(at)
		if parent == at || at == r.options.Boundary {
			break
		}
		at = parent
	}
	return r.real
}

// relative looks for a directory in and above the working directory. Links may lead anywhere in the tree.
func (r *resolver) relative(directory string) {
	if r.real == "" || !filepath.IsLocal(directory) {
		return
	}
	var tree *root
	defer func() {
		if tree != nil {
			_ = tree.Close()
		}
	}()
	for at, level := r.real, 0; level < maxLevels; at, level = filepath.Dir(at), level+1 {
		path := filepath.Join(at, directory)
		if r.exists(path) || r.dangling(path) {
			if tree == nil {
				var err error
				if tree, err = openBase(r.options.Boundary, r.set.Root, r.options.opening); err != nil {
					r.report(r.set.Root, problemOf(err))
					return
				}
			}
			if rel, err := filepath.Rel(r.set.Root, path); err == nil {
				r.directory(tree, place{r.options.Boundary, r.set.Root, rel})
			}
		}
		if at == r.set.Root {
			return
		}
	}
}

// openBase opens a directory that bounds the links below it, through the boundary.
func openBase(boundary, base string, opening func(string)) (*root, error) {
	if boundary == "" {
		return openRoot(base, opening)
	}
	rel, err := filepath.Rel(boundary, base)
	if err != nil {
		return nil, err
	}
	outer, err := openRoot(boundary, opening)
	if err != nil {
		return nil, err
	}
	defer func() { _ = outer.Close() }()
	return outer.OpenRoot(rel)
}

func within(base, path string) bool {
	rel, err := filepath.Rel(base, path)
	return err == nil && filepath.IsLocal(rel)
}

// dangling reports whether a path leads to nothing through a link, which is worth a diagnostic.
func (r *resolver) dangling(path string) bool {
	_, err := filepath.EvalSymlinks(path)
	return err != nil && !problemOf(err).gone
}

// absolute searches a directory that the operator names.
func (r *resolver) absolute(directory string) {
	if !r.exists(directory) {
		r.report(directory, problemf(CodeMissingDirectory, "this directory of the configuration cannot be found"))
		return
	}
	var base *root
	real, err := filepath.EvalSymlinks(directory)
	if err == nil {
		base, err = openRoot(real, r.options.opening)
	}
	if err != nil {
		r.report(directory, problemOf(err))
		return
	}
	defer func() { _ = base.Close() }()
	r.directory(base, place{"", real, "."})
}

// openError classifies an error within a base. A refused link has no error of its own, so the link is followed by
// name, which opens nothing.
func (r *resolver) openError(at place, err error, bound string) *FileError {
	p := problemOf(err)
	if !p.gone && p.Code == CodeReadError {
		if real, err := filepath.EvalSymlinks(at.path()); err == nil && !within(at.base, real) {
			return problemf(CodeSymlinkEscape, "a link leads out of %s", bound)
		}
	}
	return p
}

func (r *resolver) boundOf(at place) string {
	if at.base == r.set.Root {
		return "the source tree"
	}
	return "the directory of the configuration"
}
