package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lint"
)

// agentsLintCommand looks at a whole tree.
func (a *app) agentsLintCommand() *cobra.Command {
	var f agentsFlags
	var strict bool
	c := &cobra.Command{
		Use:   "lint",
		Short: "Check the AGENTS.md files of a whole source tree",
		Long: "Lint walks the tree that the working folder lies in, from its root down, and looks at the\n" +
			"chain of every folder that has an instruction file, as agents chain would show it. Each\n" +
			"problem is one row. Not looked at: folders that git ignores, node_modules, vendor,\n" +
			"third_party, .venv, target, folders behind links, and repositories in the tree, which are\n" +
			"trees of their own.\n\n" +
			"Exit code 1 says that there are errors: a link that leads out, a file that is no text, may\n" +
			"not be read, or does not fit. --strict counts warnings too.",
		Example: "  grapnel agents lint\n" +
			"  grapnel agents lint --dir ./service --strict --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.agentsLint(c.Context(), &f, strict) },
	}
	f.register(c)
	f.registerLimit()
	c.Flags().BoolVar(&strict, "strict", false, "warnings count like errors")
	completePresets(c)
	return c
}

// agentsLint walks and prints.
func (a *app) agentsLint(ctx context.Context, f *agentsFlags, strict bool) error {
	in, err := a.agentsInForce(f)
	if err != nil {
		return err
	}
	o := lint.Options{Chain: in.Options}
	if in.chars != math.MaxInt {
		o.Chars = max(1, in.chars) // 0 would not bound
	}
	progress := a.newTally("looking at instruction files: %s folders")
	o.Seen = progress.add
	report, err := lint.Run(ctx, in.dir, o)
	progress.stop()
	if err != nil {
		return unable(err)
	}
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.printLint(&report, strict)
	}
	if report.Count(chain.SeverityError) > 0 || strict && report.Count(chain.SeverityWarning) > 0 {
		return answerNo()
	}
	return nil
}

// printLint prints the problems, the worst first, and what was looked at.
func (a *app) printLint(r *lint.Report, strict bool) {
	a.printf("%s", rule("agents lint"))
	if r.Root == "" {
		a.println("there is no tree to look at")
	} else {
		a.printf("%s: %s in %s%s\n", clean(r.Root), several(r.Files, "instruction file", "instruction files"),
			several(r.Folders, "folder", "folders"), leftOut(r))
	}
	if r.ChainsOverBudget > 0 {
		a.printf("%s whose files do not fit together into the budget\n", several(r.ChainsOverBudget, "folder", "folders"))
	}
	rows := slices.Clone(r.Problems)
	slices.SortStableFunc(rows, func(x, y chain.Diagnostic) int { return cmp.Compare(rank(x.Severity), rank(y.Severity)) })
	a.printAgentsProblems("problems", r.Root, rows)
	a.printf("\n%s\n", verdictText(r, strict))
}

// leftOut says what was not looked at.
func leftOut(r *lint.Report) string {
	var parts []string
	for _, p := range []struct {
		n          int
		one, other string
	}{
		{r.Nested, "repository or tree of its own", "repositories or trees of their own"},
		{r.Ignored, "ignored folder", "ignored folders"},
		{r.Foreign, "folder of tools", "folders of tools"},
	} {
		if p.n > 0 {
			parts = append(parts, several(p.n, p.one, p.other))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; not looked at: " + strings.Join(parts, ", ")
}

// verdictText is the end of the story.
func verdictText(r *lint.Report, strict bool) string {
	errors, warnings, infos := r.Count(chain.SeverityError), r.Count(chain.SeverityWarning), r.Count(chain.SeverityInfo)
	counts := several(errors, "error", "errors") + ", " + several(warnings, "warning", "warnings") + ", " + several(infos, "remark", "remarks")
	switch {
	case errors > 0, strict && warnings > 0:
		return "NOT fine: " + counts
	case warnings+infos > 0:
		return "fine: " + counts
	}
	return "fine: nothing to remark"
}

// rank orders severities, the worst first.
func rank(s chain.Severity) int {
	return slices.Index([]chain.Severity{chain.SeverityError, chain.SeverityWarning, chain.SeverityInfo}, s)
}

// several is a number with its noun.
func several(n int, one, other string) string { return text.Thousands(n) + " " + plural(n, one, other) }
