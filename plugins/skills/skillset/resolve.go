package skillset

import (
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of one resolution. They are far above what anybody keeps, and keep the
// work and the memory for a hostile tree small.
const (
	maxLevels   = 64        // folders from the working folder up
	maxFolders  = 64        // folders that hold skills
	maxEntries  = 1024      // entries of one of them
	maxSkills   = 256       // skills of a set
	maxSkill    = 128 << 10 // bytes of a SKILL.md
	maxTotal    = 4 << 20   // bytes of all of them
	maxProblems = 64        // diagnostics
)

// Options say where skills are looked for. The zero value looks nowhere.
type Options struct {
	// Folders are the folders that hold skills, in order. A relative one is
	// looked for in the working folder and above it; an absolute one is itself.
	Folders []string
	// Markers are the names that make a folder the root of a source tree. The
	// nearest one counts; without any, the working folder is the root.
	Markers []string
	// Boundary, if set, is a folder that contains the working folder and that no
	// relative folder is read outside of, whatever the markers say. Both are real
	// paths.
	Boundary string
	// Home is the user's home folder, where the search for markers ends: a home
	// under version control is no source tree. "" if unknown.
	Home string
	// Keep says which slugs take part; nil keeps all. What it refuses is not even
	// opened.
	Keep func(slug string) bool
}

// Resolve finds the skills for a working folder, an absolute path; without one
// only absolute folders are looked into. It never fails: what cannot be read is
// left out, with a diagnostic.
func Resolve(view FS, dir string, o Options) *Set {
	r := &resolver{view: view, options: o, set: &Set{}, owner: map[string]int{}, visited: map[string]bool{}}
	if filepath.IsAbs(dir) {
		r.locate(filepath.Clean(dir))
	}
	for _, folder := range o.Folders {
		if filepath.IsAbs(folder) {
			r.absolute(filepath.Clean(folder))
		} else {
			r.relative(filepath.Clean(folder))
		}
	}
	slices.SortFunc(r.set.Skills, func(a, b Skill) int { return strings.Compare(a.Slug, b.Slug) })
	return r.set
}

// resolver is one resolution.
type resolver struct {
	view    FS
	options Options
	set     *Set
	// real is the working folder behind links, "" if there is none.
	real string
	// owner is the index in set.Skills by slug.
	owner map[string]int
	// visited are the real paths of the folders that were looked into.
	visited map[string]bool
	// bytes is what was used up of the bound.
	bytes int
}

// report adds a diagnostic; the last that there is room for says so.
func (r *resolver) report(path string, p *problem) {
	if p.gone || len(r.set.Diagnostics) == maxProblems {
		return
	}
	if len(r.set.Diagnostics) == maxProblems-1 {
		p = problemf(CodeTooMany, "there are more diagnostics than the %d that are kept", maxProblems-1)
	}
	r.set.Diagnostics = append(r.set.Diagnostics, Diagnostic{Code: p.code, Severity: p.code.Severity(), Path: path, Detail: p.detail})
}

// exists looks at a path and remembers what it led to.
func (r *resolver) exists(path string) bool {
	info, err := r.view.Stat(path)
	if err != nil {
		info = nil
	}
	r.set.seen = append(r.set.seen, look{path, info})
	return info != nil
}

// locate finds the real working folder and the root of its source tree.
func (r *resolver) locate(dir string) {
	real, err := r.view.RealPath(dir)
	if err != nil {
		r.exists(dir)
		if p := problemOf(err); !p.gone {
			r.report(dir, p)
		}
		return
	}
	if b := r.options.Boundary; b != "" && !within(b, real) {
		r.report(dir, problemf(CodeSymlinkEscape, "the working folder leads out of where it may be"))
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

// root is the nearest folder with a marker, or the working folder.
func (r *resolver) root() string {
	home := r.options.Home
	if home != "" {
		if real, err := r.view.RealPath(home); err == nil {
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

// relative looks for a folder in the working folder and above it. All of the tree
// may be linked to.
func (r *resolver) relative(folder string) {
	if r.real == "" || !filepath.IsLocal(folder) {
		return
	}
	var tree Root
	defer func() {
		if tree != nil {
			_ = tree.Close()
		}
	}()
	for at, level := r.real, 0; level < maxLevels; at, level = filepath.Dir(at), level+1 {
		path := filepath.Join(at, folder)
		if r.exists(path) || r.dangling(path) {
			if tree == nil {
				var err error
				if tree, err = openBase(r.view, r.options.Boundary, r.set.Root); err != nil {
					r.report(r.set.Root, problemOf(err))
					return
				}
			}
			if rel, err := filepath.Rel(r.set.Root, path); err == nil {
				r.folder(tree, place{r.options.Boundary, r.set.Root, rel})
			}
		}
		if at == r.set.Root {
			return
		}
	}
}

// openBase opens a folder that bounds what links below it may lead to. Within a
// boundary no name on the way leads out of that.
func openBase(view FS, boundary, base string) (Root, error) {
	if boundary == "" {
		return view.OpenRoot(base)
	}
	rel, err := filepath.Rel(boundary, base)
	if err != nil {
		return nil, err
	}
	root, err := view.OpenRoot(boundary)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenRoot(rel)
}

// within reports whether a path is base or below it.
func within(base, path string) bool {
	rel, err := filepath.Rel(base, path)
	return err == nil && filepath.IsLocal(rel)
}

// dangling reports whether a path that leads to nothing does so through a link,
// of which somebody should hear. A name that is not there is nothing to tell.
func (r *resolver) dangling(path string) bool {
	_, err := r.view.RealPath(path)
	return err != nil && !problemOf(err).gone
}

// absolute looks into a folder that the operator names.
func (r *resolver) absolute(folder string) {
	if !r.exists(folder) {
		r.report(folder, problemf(CodeMissingFolder, "this folder of the configuration cannot be found"))
		return
	}
	real, err := r.view.RealPath(folder)
	if err != nil {
		r.report(folder, problemOf(err))
		return
	}
	base, err := r.view.OpenRoot(real)
	if err != nil {
		r.report(folder, problemOf(err))
		return
	}
	defer func() { _ = base.Close() }()
	r.folder(base, place{"", real, "."})
}

// openError classifies the error of opening something that must stay in a base.
// The reason for which a link was refused has no error of its own, so the link is
// followed by name: that opens nothing.
func (r *resolver) openError(at place, err error, bound string) *problem {
	p := problemOf(err)
	if p.code != CodeReadError {
		return p
	}
	real, realErr := r.view.RealPath(at.path())
	if realErr != nil {
		return p
	}
	if !within(at.base, real) {
		return problemf(CodeSymlinkEscape, "a link leads out of %s", bound)
	}
	return p
}

// boundOf names what bounds the links of a folder of skills.
func (r *resolver) boundOf(at place) string {
	if at.base == r.set.Root {
		return "the source tree"
	}
	return "the folder of the configuration"
}
