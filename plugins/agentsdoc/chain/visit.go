package chain

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// visit looks for the source of one folder: the first candidate that is a
// regular file, or a link to one.
//
// Candidates that cannot be used are of two kinds. One that is known to be a
// regular file takes its folder, also when nothing can be made of it: to read
// the next name instead would hide the failure. One that is not, or may not be
// looked at, such as a link that leads out, is no match, and the next is tried.
func (r *resolver) visit(f folder, scope Scope, names []string) {
	v := visitor{resolver: r, folder: f, scope: scope}
	for i, name := range names {
		info, err := f.dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			p := problemOf(err)
			if p.code == CodePermission {
				// It is the folder that refuses; one row for all names.
				r.report(diagnostic(p.code, f.path, "the folder cannot be searched: %s", p.detail))
				return
			}
			r.report(diagnostic(p.code, below(f.path, name), "%s", p.detail))
			continue
		}
		v.known = append(v.known, info)
		if v.try(name, info) {
			v.reportShadowed(name, names[i+1:])
			break
		}
	}
	v.reportNearMisses(names)
}

// visitor is one visit.
type visitor struct {
	*resolver
	folder folder
	scope  Scope

	known []Info // the candidates that exist
	real  string // real path of the one that was taken
}

// try makes a source of a candidate that exists. It reports whether the
// candidate takes the folder.
func (v *visitor) try(name string, info Info) bool {
	path, real := v.folder.file(name)
	src := Source{Path: path, Scope: v.scope}
	src.Display = v.display(src.Path, v.scope)
	if !info.isLink() && !info.Mode.IsRegular() {
		v.report(diagnostic(CodeNotRegular, src.Path, "%s is not a regular file", describe(info)))
		return false
	}
	if !info.isLink() {
		src.Bytes, src.MTimeMs = info.Size, info.MTimeMs
	}
	at, p := v.load(v.folder, name, real, info)
	if p != nil {
		if p.gone {
			return false
		}
		v.report(diagnostic(p.code, src.Path, "%s", p.detail))
		src.State, src.Reason, src.RealPath = StateSkipped, string(p.code), at.path
		v.chain.Sources = append(v.chain.Sources, src)
		return !at.linked
	}
	if at.stub {
		v.report(diagnostic(CodeSymlinkStub, src.Path, "holds nothing but a path, and is taken for a link to it"))
	}
	v.known = append(v.known, at.content.info)
	v.fill(&src, at)
	taken := true
	if src.Reason == ReasonBlank && isOverride(name) {
		src.Reason = string(CodeEmptyOverride)
		v.report(diagnostic(CodeEmptyOverride, src.Path, "the override is empty and replaces nothing"))
		taken = false
	}
	v.chain.Sources = append(v.chain.Sources, src)
	if taken {
		v.real = at.path
	}
	return taken
}

// reportShadowed reports the candidates that an override replaces.
func (v *visitor) reportShadowed(winner string, rest []string) {
	if !isOverride(winner) {
		return
	}
	for _, name := range rest {
		info, err := v.folder.dir.Lstat(name)
		if err != nil || !info.isLink() && !info.Mode.IsRegular() {
			continue
		}
		if !v.isKnown(name, info) {
			path := below(v.folder.path, name)
			v.report(diagnostic(CodeShadowedByOverride, path, "%s of the same folder is read instead", winner))
		}
		v.known = append(v.known, info)
	}
}

// reportNearMisses reports files whose names look like a candidate's.
func (v *visitor) reportNearMisses(names []string) {
	for _, name := range nearMisses() {
		if slices.Contains(names, name) {
			continue
		}
		info, err := v.folder.dir.Lstat(name)
		if err != nil || !info.isLink() && !info.Mode.IsRegular() || v.isKnown(name, info) {
			continue
		}
		v.known = append(v.known, info)
		path := below(v.folder.path, name)
		v.report(diagnostic(CodeNearMissName, path, "not read: the names that count are %s", strings.Join(names, ", ")))
	}
}

// isKnown reports whether a name is one more of a file that was seen already:
// by a file system that ignores case, by a hard link, or by a symbolic one.
func (v *visitor) isKnown(name string, info Info) bool {
	if slices.ContainsFunc(v.known, info.same) {
		return true
	}
	if !info.isLink() || v.real == "" {
		return false
	}
	real, err := v.view.RealPath(below(v.folder.real, name))
	return err == nil && real == v.real
}

// describe names the type of a file that is not regular.
func describe(info Info) string {
	if info.Mode.IsDir() {
		return "a folder"
	}
	return "a fifo, socket or device"
}
