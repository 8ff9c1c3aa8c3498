package main

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

func (a *app) skillsLint(_ context.Context, _ *noFlags, args []string) error {
	dir := append(args, ".")[0]
	path, err := filepath.Abs(dir)
	if err != nil {
		return unable(err)
	}
	if filepath.Base(path) == "SKILL.md" { // the skill is its directory
		path = filepath.Dir(path)
	}
	report, err := skillset.Lint(skillset.OS{}, path)
	if err != nil {
		return usagef("the directory %s: %w", dir, err)
	}
	return a.answer(!report.Broken(), report, func() { a.printSkillsLint(path, &report) })
}

func (a *app) printSkillsLint(base string, r *skillset.LintReport) {
	a.printf("%s", rule("skills lint"))
	for i := range r.Findings {
		f := &r.Findings[i]
		at := clean(inTree(base, f.Path))
		if f.Line > 0 {
			at += ":" + strconv.Itoa(f.Line)
		}
		a.printf("%-7s  %s  %s\n         %s\n         rule: %s\n         do: %s\n", f.Severity, at, f.Code, clean(f.Detail), f.Rule, f.Remedy)
	}
	if len(r.Findings) > 0 {
		a.println("")
	}
	if r.Skills == 0 && len(r.Findings) == 0 {
		a.println("no skills here: a skill is a directory with a file SKILL.md, such as .agents/skills/release/SKILL.md")
		return
	}
	a.printf("%s, %s, %s that cannot be read\n", words.Count(r.Skills, "skill", "skills"), words.Count(len(r.Findings), "finding", "findings"), words.Count(r.Refused, "skill", "skills"))
}
