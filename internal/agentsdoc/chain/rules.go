package chain

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/ignore"
	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of the directories of rules of one chain.
const (
	maxRules     = 256
	maxRuleDepth = 8
)

// below calls do with a visitor of the directory that a path leads to, if there is one. A link on the way is followed
// as that of a candidate is.
func (v *visitor) below(path string, do func(w *visitor)) {
	w := visitor{resolver: v.resolver, directory: v.directory, scope: v.scope, base: v.base}
	release := func() {}
	defer func() { release() }()
	for name := range strings.SplitSeq(path, "/") {
		w.directory.path, w.directory.real = w.directory.file(name)
		dir, err := w.directory.dir.OpenDir(name)
		if errors.Is(err, fsview.ErrLink) {
			dir, err = v.openLinked(&w.directory)
		}
		if err != nil {
			if p := problemOf(err); !p.gone && !errors.Is(err, syscall.ENOTDIR) {
				v.report(diagnostic(p.code, w.directory.path, "the directory cannot be entered: %s", p.detail))
			}
			return
		}
		release()
		w.directory.dir, release = dir, func() { _ = dir.Close() }
	}
	do(&w)
}

// openLinked opens a directory that is a link, if it lies where files may be read.
func (v *visitor) openLinked(f *directory) (fsview.Dir, error) {
	real, err := v.view.RealPath(f.real)
	if err != nil {
		return nil, err
	}
	f.real = real
	if _, p := v.containing(v.bases(v.directory), real); p != nil {
		return nil, errors.New(p.detail)
	}
	return openReal(v.view, real, func(path string, dir fsview.Dir) error {
		if Within(v.directory.real, path) && hasGitStructure(dir) {
			return errGit
		}
		return nil
	})
}

// visitRules takes the files of a directory of rules and those below it.
func (r *resolver) visitRules(f directory, scope Scope, path string) {
	if path == "" || !IsFilePath(path) {
		return
	}
	v := visitor{resolver: r, directory: f, scope: scope, base: f.path}
	v.below(path, func(w *visitor) { w.takeRules(0) })
}

func (v *visitor) takeRules(depth int) {
	names, err := fsview.Names(v.directory.dir)
	if err != nil {
		v.report(diagnostic(problemOf(err).code, v.directory.path, "the directory cannot be listed: %s", fsview.Cause(err)))
		return
	}
	for _, name := range names {
		info, found, ok := v.look(name)
		if !ok || !found || isGitName(name) {
			continue
		}
		isRule := slices.ContainsFunc(v.chain.Options.Rules.Suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
		if info.Mode.IsDir() || info.IsLink() && !isRule {
			if depth < maxRuleDepth && v.rules <= maxRules {
				v.below(name, func(w *visitor) { w.takeRules(depth + 1) })
			}
			continue
		}
		if !isRule {
			continue
		}
		if v.rules++; v.rules > maxRules {
			if v.rules == maxRules+1 {
				v.report(diagnostic(CodeReadCap, v.directory.path, "only the first %d rules are read", maxRules))
			}
			return
		}
		v.try(name, info)
	}
}

// judgeRule says when the file of a source applies.
func (v *visitor) judgeRule(src *Source, at place) {
	text, _ := src.origin.form.text(at.content.raw)
	head, _ := frontMatter(text)
	m := readMatter(head, v.chain.Options.Rules.Bare)
	switch {
	case src.State != StateKept || m.applies:
	case m.manual:
		src.State, src.Reason, src.Text = StateSkipped, ReasonManual, ""
		v.report(v.notCarried(src, "a model or a person would have to choose it"))
	case v.scope.userWide():
		src.State, src.Reason, src.Text = StateSkipped, ReasonScoped, ""
		v.report(v.notCarried(src, "it applies to certain paths of every tree"))
	default:
		src.State, src.Reason, src.Globs, src.origin.base = StateSkipped, ReasonScoped, m.globs, v.base
	}
}

func (v *visitor) notCarried(src *Source, why string) Diagnostic {
	d := diagnostic(CodeRuleNotCarried, src.Path, "%s, which is not carried", why)
	d.Severity = phases.SeverityInfo
	return d
}

// Concerns reports whether a rule for certain paths is for a path, absolute and along the root as the source's is.
func (s *Source) Concerns(path string) bool {
	if s.Reason != ReasonScoped || len(s.Globs) == 0 {
		return false
	}
	rest, ok := strings.CutPrefix(path, s.origin.base+string(filepath.Separator))
	if !ok || rest == "" {
		return false
	}
	var way ignore.Way
	way.Add(strings.Join(s.Globs, "\n") + "\n")
	for name := range strings.SplitSeq(filepath.ToSlash(rest), "/") {
		if way.Enter(name); way.Ignored() {
			return true
		}
	}
	return false
}
