package skillset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Finding is what an author should change in a skill.
type Finding struct {
	Diagnostic
	Rule   string `json:"rule"`   // of the format, or of this program
	Remedy string `json:"remedy"` // what to do
}

// LintReport says what is wrong with the skills of a directory.
type LintReport struct {
	Skills   int       `json:"skills"`  // that were looked at
	Refused  int       `json:"refused"` // of them, for they cannot be read
	Findings []Finding `json:"findings"`
}

// Broken reports whether a skill breaks a rule.
func (r *LintReport) Broken() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity != phases.SeverityInfo })
}

// Bounds of the search for skills, as the format's guide for clients proposes them.
const (
	lintDepth       = 6
	lintDirectories = 2000
	lintLines       = 500 // of a body, by the format's advice
)

// Lint checks the skill of a directory, or all skills below it, but for hidden directories and node_modules. A link that leads
// out of the directory is a finding. The error says why the directory cannot be searched.
func Lint(directory string) (LintReport, error) {
	base, err := openRoot(directory, nil)
	if err != nil {
		return LintReport{}, problemOf(err)
	}
	defer func() { _ = base.Close() }()
	l := &linter{base: base, path: directory, report: LintReport{Findings: []Finding{}}, slugs: map[string]string{}}
	l.walk(".", 0)
	return l.report, nil
}

type linter struct {
	base   *root
	path   string // of the base
	report LintReport
	seen   int               // directories
	slugs  map[string]string // directories of slugs, by the directory that holds them and the slug
}

func (l *linter) walk(rel string, depth int) {
	if l.seen++; l.seen > lintDirectories || depth > lintDepth {
		if l.seen == lintDirectories+1 || depth > lintDepth {
			l.find(rel, problemf(CodeTooMany, "not looked at: more than %d directories, or deeper than %d", lintDirectories, lintDepth), phases.SeverityInfo)
		}
		return
	}
	if f, err := l.base.Open(filepath.Join(rel, skillFile)); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			_ = f.Close()
		}
		l.skill(rel)
		return
	}
	if path := misspelt(filepath.Join(l.path, rel)); path != "" {
		l.add(Diagnostic{Code: CodeMisplaced, Severity: phases.SeverityWarning, Path: path, Detail: misspeltDetail})
	}
	names, err := list(l.base, rel)
	if err != nil {
		l.find(rel, problemOf(err), phases.SeverityError)
		return
	}
	// In the directories with a dot, which are skipped otherwise, are some where projects keep skills.
	for _, name := range append(names, ".agents/skills", ".claude/skills") {
		if info, err := os.Stat(filepath.Join(l.path, rel, name)); err == nil && info.IsDir() && name != "node_modules" {
			l.walk(filepath.Join(rel, name), depth+1)
		}
	}
}

// skill checks one skill by itself, as a resolution would take it.
func (l *linter) skill(rel string) {
	l.report.Skills++
	at := place{"", l.path, rel}
	if rel == "." { // the directory's name is the skill's
		at = place{"", filepath.Dir(l.path), filepath.Base(l.path)}
	}
	above, err := openRoot(at.base, nil)
	if err != nil {
		l.find(rel, problemOf(err), phases.SeverityError)
		return
	}
	defer func() { _ = above.Close() }()
	r := &resolver{set: &Set{}, owner: map[string]int{}, visited: map[string]bool{}}
	r.skill(above, at)
	for _, d := range r.set.Diagnostics {
		l.add(d)
	}
	if len(r.set.Skills) == 0 {
		if !slices.ContainsFunc(r.set.Diagnostics, func(d Diagnostic) bool { return d.Code == CodeNotForModels }) {
			l.report.Refused++
			l.report.Findings[len(l.report.Findings)-1].Severity = phases.SeverityError
		}
		return
	}
	s := &r.set.Skills[0]
	key := filepath.Dir(filepath.Join(l.path, rel)) + "\x00" + s.Slug
	if other, known := l.slugs[key]; known {
		l.find(rel, problemf(CodeDuplicate, "the skill %s is there twice: see %s", s.Slug, other), phases.SeverityWarning)
	}
	l.slugs[key] = filepath.Base(s.Dir)
	if above := filepath.Dir(filepath.Dir(s.Dir)); filepath.Base(above) == "skills" {
		l.find(rel, problemf(CodeMisplaced, deepDetail), phases.SeverityWarning)
	}
	if n := strings.Count(s.Body, "\n") + 1; n > lintLines {
		l.find(rel, problemf(CodeLong, "the text has %d lines", n), phases.SeverityInfo)
	}
}

func (l *linter) find(rel string, p *FileError, severity phases.Severity) {
	l.add(Diagnostic{Code: p.Code, Severity: severity, Path: filepath.Join(l.path, rel, skillFile), Line: p.line, Detail: p.Detail})
}

func (l *linter) add(d Diagnostic) {
	f := Finding{Diagnostic: d}
	f.Rule, f.Remedy = d.Code.advice()
	l.report.Findings = append(l.report.Findings, f)
}

// advice is the rule behind a code, and what an author can do.
func (c Code) advice() (rule, remedy string) {
	switch c {
	case CodeFrontMatter:
		return "SKILL.md begins with plain YAML between two lines ---, at most 8 KiB of it", "change the line as the finding says"
	case CodeName:
		return fmt.Sprintf("name is 1 to %d of a-z, 0-9 and single hyphens inside, and the directory's name", maxName), "give the directory and name the same word"
	case CodeDescription:
		return fmt.Sprintf("description is a text of 1 to %d characters", maxDescription), "say in it what the skill does and when to use it, and move the rest into the text"
	case CodePaths:
		return "paths are patterns of files from the root of the source tree", "fix the patterns that are numbered, and put them in quotes"
	case CodeMisplaced:
		return "a skill is DIRECTORY/SKILL.md directly in a directory of skills", "rename the file, or move the skill up"
	case CodeDuplicate:
		return "a name occurs once in a directory of skills", "rename one of them"
	case CodeHidden:
		return "a text shows all that it says", "remove the characters that do not show"
	case CodeLong:
		return fmt.Sprintf("a SKILL.md should have at most %d lines", lintLines), "move what is not always needed into files beside it"
	case CodeNotForModels:
		return "disable-model-invocation: true keeps a skill from models", "remove the key if models may use the skill"
	case CodeTooLarge:
		return "a SKILL.md has at most 128 KiB", "move parts of it into files beside it"
	case CodeTooMany:
		return "a search looks at so many directories and no more", "name a directory nearer to the skills"
	default:
		return "a skill's files are regular text files inside of its directory, which everybody may read", "replace the file by one"
	}
}
