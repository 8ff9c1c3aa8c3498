package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lint"
	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
)

type lintFlags struct {
	limitFlags

	Strict bool `flag:"strict" usage:"warnings count like errors"`
}

func (a *app) agentsLint(ctx context.Context, f *lintFlags, _ []string) error {
	in, err := a.agentsInForce(f.Dir, f.layer())
	if err != nil {
		return err
	}
	o := lint.Options{Chain: in.Options, Chars: max(1, in.chars)} // 0 would not bound
	progress := a.startCount("looking at instruction files: %s directories")
	o.Seen = progress.add
	report, err := lint.Run(ctx, in.dir, o)
	progress.stop()
	if err != nil {
		return unable(err)
	}
	fine := report.Count(phases.SeverityError) == 0 && (!f.Strict || report.Count(phases.SeverityWarning) == 0)
	return a.answer(fine, report, func() { a.printLint(&report, f.Strict) })
}

func (a *app) printLint(r *lint.Report, strict bool) {
	a.printf("%s", rule("agents lint"))
	if r.Root == "" {
		a.println("there is no tree to look at")
	} else {
		a.printf("%s: %s in %s%s\n", clean(r.Root), words.Count(r.Files, "instruction file", "instruction files"),
			words.Count(r.Directories, "directory", "directories"), omitted(r))
	}
	if r.ChainsOverBudget > 0 {
		a.printf("%s whose files do not fit together into the budget\n", words.Count(r.ChainsOverBudget, "directory", "directories"))
	}
	rows := slices.Clone(r.Problems)
	worst := []phases.Severity{phases.SeverityError, phases.SeverityWarning, phases.SeverityInfo}
	slices.SortStableFunc(rows, func(x, y chain.Diagnostic) int {
		return cmp.Compare(slices.Index(worst, x.Severity), slices.Index(worst, y.Severity))
	})
	a.printAgentsProblems("problems", r.Root, rows)
	a.printf("\n%s\n", lintVerdict(r, strict))
}

func omitted(r *lint.Report) string {
	var parts []string
	for _, p := range []struct {
		n          int
		one, other string
	}{
		{r.Nested, "repository or tree of its own", "repositories or trees of their own"},
		{r.Ignored, "ignored directory", "ignored directories"},
		{r.Foreign, "directory of tools", "directories of tools"},
	} {
		if p.n > 0 {
			parts = append(parts, words.Count(p.n, p.one, p.other))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; not looked at: " + strings.Join(parts, ", ")
}

func lintVerdict(r *lint.Report, strict bool) string {
	errors, warnings, infos := r.Count(phases.SeverityError), r.Count(phases.SeverityWarning), r.Count(phases.SeverityInfo)
	counts := words.Count(errors, "error", "errors") + ", " + words.Count(warnings, "warning", "warnings") + ", " + words.Count(infos, "remark", "remarks")
	if errors > 0 || strict && warnings > 0 {
		return "NOT fine: " + counts
	}
	return "fine: " + cmp.Or(words.If(warnings+infos > 0, counts), "nothing to remark")
}

func (a *app) skillsLint(_ context.Context, _ *noFlags, args []string) error {
	dir := append(args, ".")[0]
	path, err := filepath.Abs(dir)
	if err != nil {
		return unable(err)
	}
	if filepath.Base(path) == "SKILL.md" { // the skill is its directory
		path = filepath.Dir(path)
	}
	report, err := skillset.Lint(path)
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

type fileExplanation struct {
	Path   string `json:"path"   jsonschema:"the file that was asked about, absolute"`
	Dir    string `json:"dir"    jsonschema:"the working directory of the chain"`
	Root   string `json:"root"   jsonschema:"where the chain begins; empty where there is none"`
	In     bool   `json:"in"     jsonschema:"some of the file's text is in the chain's"`
	Scope  string `json:"scope"  jsonschema:"the scope of a file that is a source; else empty"`
	State  string `json:"state"  jsonschema:"the state of a file that is a source; else empty"`
	Reason string `json:"reason" jsonschema:"why it is not, or not whole, in the text: the source's reason, a code, or name, first, outside, missing, cut"`
	Why    string `json:"why"    jsonschema:"the same as a sentence"`

	Sources     []chain.Source     `json:"sources"     jsonschema:"the chain"`
	Diagnostics []chain.Diagnostic `json:"diagnostics" jsonschema:"what there is to say of the file and its directory"`
}

const (
	notName  = "name"
	notFirst = "first"   // another candidate comes first
	notOnWay = "outside" // its directory is not between the root and the working directory
	notFound = "missing"
	notSent  = "cut" // the file that imports it is cut or omitted
)

func (a *app) agentsExplain(_ context.Context, f *chainFlags, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil || args[0] == "" {
		return usagef("explain %q: give the path of a file", args[0])
	}
	if f.Dir == "" {
		f.Dir = filepath.Dir(path)
	}
	in, c, err := a.chainInForce(f)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() && !slices.Contains(candidates(&in.Options), filepath.Base(path)) {
		return usagef("explain %s: is a directory; name a file in it, such as %s", args[0], filepath.Join(args[0], "AGENTS.md"))
	}
	report := chain.NewReport(c, in.render(c))
	e := explainFile(&c, &report, path)
	const maxWhy = 1000
	return a.answer(e.Reason != notFound, e, func() {
		a.printf("%s: %s\n", clean(inTree(e.Root, e.Path)), text.Sanitize(e.Why, maxWhy))
		a.printSources(&report)
		a.printAgentsProblems("diagnostics", e.Root, e.Diagnostics)
	})
}

func explainFile(c *chain.Chain, rep *chain.Report, path string) *fileExplanation {
	e := &fileExplanation{Path: path, Dir: rep.Dir, Root: rep.Root, Sources: rep.Sources, Diagnostics: []chain.Diagnostic{}}
	for _, d := range rep.Diagnostics {
		if d.Path == path || d.Path == filepath.Dir(path) || d.Code == chain.CodeRootRefused {
			e.Diagnostics = append(e.Diagnostics, d)
		}
	}
	by := c.ImporterOf(path, realPath(path))
	if s := sourceAt(rep.Sources, path); s != nil {
		e.In, e.Scope, e.State, e.Reason = s.DeliveredBytes > 0, string(s.Scope), string(s.State), s.Reason
		e.Why = whyInChain(rep.Root, s, firstAbout(e.Diagnostics, path)) + words.If(s.ImportedBy != "", "; imported by "+importedAt(rep.Root, by))
		return e
	}
	if by.Path != "" {
		sent := chain.Chain{Sources: slices.DeleteFunc(slices.Clone(rep.Sources), func(s chain.Source) bool { return s.DeliveredBytes == 0 })}
		e.In = sent.ImporterOf(path, realPath(path)).Path != ""
		e.Reason = words.If(!e.In, notSent)
		e.Why = "it is imported by " + importedAt(rep.Root, by) + words.If(e.In, ", and in the text there") + words.If(!e.In, "; the text was cut before it")
		return e
	}
	e.Reason, e.Why = whyNoSource(rep, e, path)
	return e
}

func importedAt(root string, by chain.Importer) string {
	return fmt.Sprintf("%s:%d", inTree(root, by.Path), by.Line)
}

// whyNotImported says where a file is named that the options do not import, and what would; empty if nothing names it.
func whyNotImported(rep *chain.Report, path string) string {
	preset := "the preset " + string(rep.Options.Preset)
	rules := cmp.Or(words.If(rep.Options.Imports == chain.ImportOff, preset+" reads no imports"), preset+" does not import it that way")
	type way struct {
		options chain.Options
		hint    string
	}
	ways := []way{
		{rep.Options, rules + "; imports: true in the plugin's configuration would read it"},
		{rep.Options, rules + words.If(rep.Options.Layout != chain.LayoutJoined, "; imports: true reads whole lines such as @./"+filepath.Base(path))},
	}
	ways[0].options.Imports, ways[1].options.Imports = chain.ImportLines, chain.ImportListed
	for _, other := range []chain.Preset{chain.PresetClaude, chain.PresetGemini} {
		if o, err := chain.ForPreset(other, chain.Places{}); err == nil {
			ways = append(ways, way{o, preset + " does not import it; the preset " + string(other) + " would"})
		}
	}
	for _, w := range ways {
		c := chain.Resolve(chain.OS{}, rep.Dir, w.options)
		if by := c.ImporterOf(path, realPath(path)); by.Path != "" {
			return importedAt(rep.Root, by) + " names it, and " + w.hint
		}
	}
	return ""
}

// sourceAt prefers the used one of two sources with the same path: the user's own and the directory's.
func sourceAt(sources []chain.Source, path string) *chain.Source {
	var found *chain.Source
	for i := range sources {
		if s := &sources[i]; s.Path == path && (found == nil || s.DeliveredBytes > 0) {
			found = s
		}
	}
	return found
}

func whyInChain(root string, s *chain.Source, d *chain.Diagnostic) string {
	of := fmt.Sprintf("%s of %s bytes", text.Thousands(int(s.Kept)), text.Thousands(int(s.Bytes)))
	switch s.State { //nolint:exhaustive // of a file that is not used more can be said
	case chain.StateKept:
		return "it is in the text, whole: " + of
	case chain.StateTruncated:
		return "it is in the text, and cut: " + of + " are left"
	case chain.StateOmitted:
		return "it is a source, and omitted: " + whySource(root, s)
	case chain.StateDuplicate:
		return "it is omitted: the same file or text stands nearer, as " + inTree(root, s.DuplicateOf)
	}
	if d != nil && d.Path == s.Path && string(d.Code) == s.Reason {
		return "it is not used: " + d.Detail
	}
	return "it is not used: " + whySource(root, s)
}

func whyNoSource(rep *chain.Report, e *fileExplanation, path string) (reason, why string) {
	below := func(base, path string) bool { rel := inTree(base, path); return rel == "." || !filepath.IsAbs(rel) }
	name := filepath.Base(path)
	_, err := os.Lstat(path)
	agent, hint := rep.Options.AgentOf(path)
	names := "its name does not count: those that do are " + strings.Join(candidates(&rep.Options), ", ") + "; "
	switch d := firstAbout(e.Diagnostics, path); {
	case rep.Root == "":
		return string(chain.CodeRootRefused), "there is no chain: the root is refused"
	case errors.Is(err, fs.ErrNotExist):
		return notFound, "there is no such file"
	case !below(rep.Root, filepath.Dir(path)) || !below(filepath.Dir(path), rep.Dir):
		return notOnWay, strings.TrimSuffix(fmt.Sprintf("its directory is not on the way from the root, %s, to %s; %s", rep.Root, rep.Dir, whyNotImported(rep, path)), "; ")
	case agent != "":
		return notName, "it is a file for " + agent + ", and " + names + hint
	case !slices.Contains(candidates(&rep.Options), name):
		return notName, names +
			cmp.Or(whyNotImported(rep, path), "no file of this chain names it as an import"+words.If(filepath.Ext(name) == ".md", "; --fallback "+name+", or fallback_names in the configuration, makes it one"))
	case d != nil:
		return string(d.Code), d.Detail
	}
	for i := range rep.Sources {
		if s := &rep.Sources[i]; filepath.Dir(s.Path) == filepath.Dir(path) {
			return notFirst, filepath.Base(s.Path) + " of the same directory comes before it"
		}
	}
	return string(chain.CodeReadError), "its directory could not be searched to the end"
}

// firstAbout prefers a diagnostic of the file itself to one of its directory.
func firstAbout(rows []chain.Diagnostic, path string) *chain.Diagnostic {
	for i := range rows {
		if rows[i].Path == path {
			return &rows[i]
		}
	}
	if len(rows) > 0 {
		return &rows[0]
	}
	return nil
}

func candidates(o *chain.Options) []string {
	return slices.Concat(o.Names, o.FallbackNames, o.LocalNames)
}
