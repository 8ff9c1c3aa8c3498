package chain

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// visit looks for the source of one directory: the first candidate that is a regular file, or a link to one; of the
// person's own files, all. It returns false if the directory cannot be searched.
//
// A regular file that cannot be used still takes its directory: reading the next name instead would hide the failure.
// Any other unusable candidate, such as a link that leads out, is skipped.
func (r *resolver) visit(f directory, scope Scope, names []string) bool {
	v := visitor{resolver: r, directory: f, scope: scope}
	r.known = r.known[:0]
	for i, name := range names {
		taken, ok := v.candidate(name)
		if !ok {
			return false
		}
		if !taken || scope == ScopeLocal || r.chain.Options.AllNames {
			continue
		}
		if IsOverride(name) {
			v.reportUnread(names[i+1:], CodeShadowedByOverride, "%s of the same directory is read instead", name)
		}
		break
	}
	if r.chain.Options.Checks.NearMisses && scope != ScopeManaged && scope != ScopeLocal {
		// Names that people write, or systems without case make. They are looked up: a directory is never listed.
		near := []string{"agents.md", "Agents.md", "AGENTS.MD", "AGENT.md", "Agent.md", "agent.md"}
		near = slices.DeleteFunc(near, func(name string) bool {
			return slices.Contains(names, name) || scope == ScopeProject && isPage(v.display(Below(f.path, name), scope))
		})
		v.reportUnread(near, CodeNearMissName, "not read: the names that count are %s", strings.Join(names, ", "))
	}
	return true
}

// visitor is one visit.
type visitor struct {
	*resolver
	directory directory
	scope     Scope
	base      string // of rules, the directory that they are for; else empty

	real string // real path of the chosen candidate
}

// candidate makes a source of a candidate, if it is there, and reports whether it takes the directory. Not ok means that
// the directory cannot be searched.
func (v *visitor) candidate(name string) (taken, ok bool) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		v.below(name[:i], func(w *visitor) { taken, _ = w.candidate(name[i+1:]) })
		return taken, true
	}
	info, found, ok := v.look(name)
	if !ok || !found {
		return false, ok
	}
	v.known = append(v.known, info)
	return v.try(name, info), true
}

// has reports whether there is a file of a name.
func (v *visitor) has(name string) (found bool) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		v.below(name[:i], func(w *visitor) { found = w.has(name[i+1:]) })
		return found
	}
	info, err := v.directory.dir.Lstat(name)
	return err == nil && (info.Mode.IsRegular() || info.IsLink())
}

// look looks up a name. Not ok means that the directory cannot be searched, which is reported once.
func (v *visitor) look(name string) (info fsview.Info, found, ok bool) {
	info, err := v.directory.dir.Lstat(name)
	switch {
	case err == nil:
		return info, true, true
	case errors.Is(err, fs.ErrNotExist):
		return info, false, true
	}
	p := problemOf(err)
	if p.code == CodePermission {
		v.report(diagnostic(p.code, v.directory.path, "the directory cannot be searched: %s", p.detail))
		return info, false, false
	}
	v.report(diagnostic(p.code, Below(v.directory.path, name), "%s", p.detail))
	return info, false, true
}

// try makes a source of an existing candidate and reports whether the candidate takes the directory.
func (v *visitor) try(name string, info fsview.Info) bool {
	path, real := v.directory.file(name)
	if !info.IsLink() && !info.Mode.IsRegular() {
		v.report(diagnostic(CodeNotRegular, path, "%s is not a regular file", describe(info)))
		return false
	}
	v.chain.Sources = append(v.chain.Sources, Source{Path: path, Display: v.display(path, v.scope), Scope: v.scope, Rule: v.base != ""})
	src := &v.chain.Sources[len(v.chain.Sources)-1]
	if !info.IsLink() {
		src.Bytes, src.MTimeMs = info.Size, info.MTimeMs
	}
	switch {
	case v.isExcluded(path):
		src.State, src.Reason = StateSkipped, ReasonExcluded
		return false
	case v.scope == ScopeLocal && !v.trusted:
		v.withhold(src)
		return false
	}
	at, p := v.load(v.directory, name, real, info)
	if p != nil && p.gone {
		v.chain.Sources = v.chain.Sources[:len(v.chain.Sources)-1]
		return false
	}
	if p != nil {
		v.report(diagnostic(p.code, path, "%s", p.detail))
		src.State, src.Reason, src.RealPath = StateSkipped, string(p.code), at.path
		return !at.linked
	}
	if at.stub {
		v.report(diagnostic(CodeSymlinkStub, path, "holds nothing but a path, and is taken for a link to it"))
	}
	if v.once[at.path] {
		v.chain.Sources = v.chain.Sources[:len(v.chain.Sources)-1]
		return true
	}
	if v.once != nil {
		v.once[at.path] = true
	}
	v.known = append(v.known, at.content.info)
	v.fill(src, v.directory, at)
	if v.base != "" {
		v.judgeRule(src, at)
	}
	if src.Reason == ReasonBlank && IsOverride(name) && v.emptyOverride(src) {
		return false
	}
	v.real = at.path
	if v.once != nil && src.State == StateKept {
		v.list(len(v.chain.Sources)-1, v.directory, at)
	}
	return true
}

// isExcluded applies the patterns to the tree, never to the user's own files.
func (v *visitor) isExcluded(path string) bool {
	return !v.scope.userWide() && Excluded(v.chain.Options.Exclude, v.display(path, v.scope))
}

// emptyOverride reports an override without text, and whether the names after it are tried.
func (v *visitor) emptyOverride(src *Source) bool {
	src.Reason = string(CodeEmptyOverride)
	rule := v.chain.Options.EmptyOverride.Project
	if v.scope.userWide() {
		rule = v.chain.Options.EmptyOverride.Global
	}
	if rule == OverrideShadows {
		v.report(diagnostic(CodeEmptyOverride, src.Path, "the override is empty and leaves its directory without a file"))
		return false
	}
	v.report(diagnostic(CodeEmptyOverride, src.Path, "the override is empty and replaces nothing"))
	return true
}

// reportUnread reports files of the directory that are not read.
func (v *visitor) reportUnread(names []string, code Code, format, arg string) {
	for _, name := range names {
		info, err := v.directory.dir.Lstat(name)
		if err != nil || !info.IsLink() && !info.Mode.IsRegular() || v.isKnown(name, info) {
			continue
		}
		v.known = append(v.known, info)
		if path := Below(v.directory.path, name); !v.isExcluded(path) {
			v.report(diagnostic(code, path, format, arg))
		}
	}
}

// isKnown reports whether a name is another one of a known file: by a file system that ignores case, by a hard link,
// or by a symbolic one.
func (v *visitor) isKnown(name string, info fsview.Info) bool {
	if slices.ContainsFunc(v.known, info.Same) {
		return true
	}
	if !info.IsLink() || v.real == "" {
		return false
	}
	real, err := v.view.RealPath(Below(v.directory.real, name))
	return err == nil && real == v.real
}

func describe(info fsview.Info) string {
	if info.Mode.IsDir() {
		return "a directory"
	}
	return "a fifo, socket or device"
}
