package chain

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// visit looks for the source of one folder: the first candidate that is a
// regular file, or a link to one. It reports false for a folder that may not be
// searched.
//
// Candidates that cannot be used are of two kinds. One that is known to be a
// regular file takes its folder, also when nothing can be made of it: to read
// the next name instead would hide the failure. One that is not, or may not be
// looked at, such as a link that leads out, is no match, and the next is tried.
func (r *resolver) visit(f folder, scope Scope, names []string) bool {
	v := visitor{resolver: r, folder: f, scope: scope}
	r.known = r.known[:0]
	for i, name := range names {
		info, found, ok := v.look(name)
		if !ok {
			return false
		}
		if !found {
			continue
		}
		v.known = append(v.known, info)
		if v.try(name, info) {
			v.reportShadowed(name, names[i+1:])
			break
		}
	}
	if r.chain.Options.Checks.NearMisses && scope != ScopeManaged {
		v.reportNearMisses(names)
	}
	return true
}

// visitLocal takes the person's own files of a folder, all that are there.
func (r *resolver) visitLocal(f folder, names []string) {
	v := visitor{resolver: r, folder: f, scope: ScopeLocal}
	r.known = r.known[:0]
	for _, name := range names {
		info, found, ok := v.look(name)
		if !ok {
			return
		}
		if found {
			v.try(name, info)
		}
	}
}

// visitor is one visit. The resolver's known are the candidates that exist.
type visitor struct {
	*resolver
	folder folder
	scope  Scope

	real string // real path of the one that was taken
}

// look describes what has the name. Not ok means that the folder may not be
// searched, which is one row for all names.
func (v *visitor) look(name string) (info fsview.Info, found, ok bool) {
	info, err := v.folder.dir.Lstat(name)
	switch {
	case err == nil:
		return info, true, true
	case errors.Is(err, fs.ErrNotExist):
		return info, false, true
	}
	p := problemOf(err)
	if p.code == CodePermission {
		v.report(diagnostic(p.code, v.folder.path, "the folder cannot be searched: %s", p.detail))
		return info, false, false
	}
	v.report(diagnostic(p.code, below(v.folder.path, name), "%s", p.detail))
	return info, false, true
}

// try makes a source of a candidate that exists. It reports whether the
// candidate takes the folder.
func (v *visitor) try(name string, info fsview.Info) bool {
	path, real := v.folder.file(name)
	if !info.IsLink() && !info.Mode.IsRegular() {
		v.report(diagnostic(CodeNotRegular, path, "%s is not a regular file", describe(info)))
		return false
	}
	src := v.add(path)
	if !info.IsLink() {
		src.Bytes, src.MTimeMs = info.Size, info.MTimeMs
	}
	if v.refuse(src) {
		return false
	}
	at, p := v.load(v.folder, name, real, info)
	if p != nil && p.gone {
		v.drop()
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
	v.known = append(v.known, at.content.info)
	v.fill(src, v.folder, at)
	if src.Reason == ReasonBlank && option.IsOverride(name) && v.emptyOverride(src) {
		return false
	}
	v.real = at.path
	return true
}

// add adds a source to the chain. It is good until the next is added.
func (v *visitor) add(path string) *Source {
	v.chain.Sources = append(v.chain.Sources, Source{Path: path, Display: v.display(path, v.scope), Scope: v.scope})
	return &v.chain.Sources[len(v.chain.Sources)-1]
}

// drop takes back the source that was added last.
func (v *visitor) drop() { v.chain.Sources = v.chain.Sources[:len(v.chain.Sources)-1] }

// refuse skips a source that is not even opened.
func (v *visitor) refuse(src *Source) bool {
	switch {
	case v.isExcluded(src.Path):
		src.State, src.Reason = StateSkipped, ReasonExcluded
	case v.scope == ScopeLocal && !v.trusted:
		v.withhold(src)
	default:
		return false
	}
	return true
}

// isExcluded reports whether the options exclude a file of the folder, under
// whatever name. They speak of the tree, and not of the user's own files.
func (v *visitor) isExcluded(path string) bool {
	return !v.scope.userWide() && v.excluded(v.display(path, v.scope))
}

// emptyOverride deals with an override without text. It reports whether the
// names after it are tried.
func (v *visitor) emptyOverride(src *Source) bool {
	src.Reason = string(CodeEmptyOverride)
	if v.chain.Options.EmptyOverride.For(v.scope.userWide()) == option.OverrideShadows {
		v.report(diagnostic(CodeEmptyOverride, src.Path, "the override is empty and leaves its folder without a file"))
		return false
	}
	v.report(diagnostic(CodeEmptyOverride, src.Path, "the override is empty and replaces nothing"))
	return true
}

// reportShadowed reports the candidates that an override replaces.
func (v *visitor) reportShadowed(winner string, rest []string) {
	if !option.IsOverride(winner) {
		return
	}
	for _, name := range rest {
		info, err := v.folder.dir.Lstat(name)
		if err != nil || !info.IsLink() && !info.Mode.IsRegular() {
			continue
		}
		if !v.isKnown(name, info) {
			path := below(v.folder.path, name)
			if v.isExcluded(path) {
				continue
			}
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
		if err != nil || !info.IsLink() && !info.Mode.IsRegular() || v.isKnown(name, info) {
			continue
		}
		v.known = append(v.known, info)
		path := below(v.folder.path, name)
		if v.isExcluded(path) {
			continue
		}
		v.report(diagnostic(CodeNearMissName, path, "not read: the names that count are %s", strings.Join(names, ", ")))
	}
}

// isKnown reports whether a name is one more of a file that was seen already:
// by a file system that ignores case, by a hard link, or by a symbolic one.
func (v *visitor) isKnown(name string, info fsview.Info) bool {
	if slices.ContainsFunc(v.known, info.Same) {
		return true
	}
	if !info.IsLink() || v.real == "" {
		return false
	}
	real, err := v.view.RealPath(below(v.folder.real, name))
	return err == nil && real == v.real
}

// nearMisses are names that people write, or systems without case make, for
// AGENTS.md. They are looked for by name: a folder is never listed.
func nearMisses() [6]string {
	return [...]string{"agents.md", "Agents.md", "AGENTS.MD", "AGENT.md", "Agent.md", "agent.md"}
}

// describe names the type of a file that is not regular.
func describe(info fsview.Info) string {
	if info.Mode.IsDir() {
		return "a folder"
	}
	return "a fifo, socket or device"
}
