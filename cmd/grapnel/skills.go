package main

import (
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/internal/words"
)

func (a *app) skillsLintCommand() *cobra.Command {
	return newCommand("lint [DIR]", "Check the skills in a directory against the format's rules", atMost(1, "skills lint takes at most one DIR"),
		func(_ *cobra.Command, args []string) error { return a.skillsLint(append(args, ".")[0]) })
}

func (a *app) skillsLint(dir string) error {
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
	if err := a.print(report, func() { a.printSkillsLint(path, &report) }); err != nil {
		return err
	}
	if report.Broken() {
		return answerNo()
	}
	return nil
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
