package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// fileExplanation is the JSON of agents explain.
type fileExplanation struct {
	Path   string `json:"path"   jsonschema:"the file that was asked about, absolute"`
	Dir    string `json:"dir"    jsonschema:"the working folder of the chain"`
	Root   string `json:"root"   jsonschema:"where the chain begins; empty where there is none"`
	In     bool   `json:"in"     jsonschema:"some of the file's text is in the chain's"`
	Scope  string `json:"scope"  jsonschema:"the scope of a file that is a source; else empty"`
	State  string `json:"state"  jsonschema:"the state of a file that is a source; else empty"`
	Reason string `json:"reason" jsonschema:"why it is not, or not whole, in the text: the source's reason, a code, or name, first, outside, missing"`
	Why    string `json:"why"    jsonschema:"the same as a sentence"`

	Sources     []chain.Source     `json:"sources"     jsonschema:"the chain"`
	Diagnostics []chain.Diagnostic `json:"diagnostics" jsonschema:"what there is to say of the file and its folder"`
}

// Reasons of files that are no sources and that no diagnostic is about.
const (
	// notName is a file whose name is none that is looked for.
	notName = "name"
	// notFirst is a candidate with another one before it.
	notFirst = "first"
	// notOnWay is a file of a folder that is not on the way to the working folder.
	notOnWay = "outside"
	// notFound is a file that is not there.
	notFound = "missing"
)

// agentsExplainCommand says why a file is in a chain or not.
func (a *app) agentsExplainCommand() *cobra.Command {
	var f agentsFlags
	c := &cobra.Command{
		Use:   "explain PATH",
		Short: "Say why a file is, or is not, among the AGENTS.md files of its folder",
		Long: "Explain says of one file whether it is among the sources of its folder (or of --dir), and\n" +
			"why: its name, another file before it, the same text nearer, a link that leads out, no\n" +
			"room, and so on. Below it stands the chain. A file that is not there is exit code 1.",
		Example: "  grapnel agents explain service/AGENTS.md\n" +
			"  grapnel agents explain AGENTS.md --dir service/api",
		Args: exactlyOne("explain needs one PATH of a file, such as service/AGENTS.md"),
		RunE: func(_ *cobra.Command, args []string) error { return a.agentsExplain(&f, args[0]) },
	}
	f.register(c)
	f.registerChain()
	c.Flags().Lookup("dir").Usage = "working `DIR` of the chain (default the file's folder)"
	completePresets(c)
	return c
}

// agentsExplain answers "no" for a file that is not there.
func (a *app) agentsExplain(f *agentsFlags, arg string) error {
	path, err := filepath.Abs(arg)
	if err != nil || arg == "" {
		return usagef("explain %q: give the path of a file", arg)
	}
	if f.dir == "" {
		f.dir = filepath.Dir(path)
	}
	in, err := a.agentsInForce(f)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() && !slices.Contains(candidates(&in.Options), filepath.Base(path)) {
		return usagef("explain %s: is a folder; name a file in it, such as %s", arg, filepath.Join(arg, "AGENTS.md"))
	}
	c := chain.Resolve(chain.OS{}, in.dir, in.Options)
	report := chain.NewReport(c, in.render(c))
	e := explainFile(&report, path)
	if a.json {
		err = a.printJSON(e)
	} else {
		a.printFileExplanation(e, &report)
	}
	if err == nil && e.Reason == notFound {
		return answerNo()
	}
	return err
}

// explainFile finds out what became of a file.
func explainFile(rep *chain.Report, path string) *fileExplanation {
	e := &fileExplanation{Path: path, Dir: rep.Dir, Root: rep.Root, Sources: rep.Sources, Diagnostics: []chain.Diagnostic{}}
	for _, d := range rep.Diagnostics {
		if d.Path == path || d.Path == filepath.Dir(path) || d.Code == chain.CodeRootRefused {
			e.Diagnostics = append(e.Diagnostics, d)
		}
	}
	if s := sourceAt(rep.Sources, path); s != nil {
		e.In, e.Scope, e.State, e.Reason = s.DeliveredBytes > 0, string(s.Scope), string(s.State), s.Reason
		e.Why = whyInChain(rep.Root, s, firstAbout(e.Diagnostics, path))
		return e
	}
	e.Reason, e.Why = whyNoSource(rep, e, path)
	return e
}

// sourceAt is the source with a path. A file can be one twice, as the user's own
// and as the folder's; then the one that is used is meant.
func sourceAt(sources []chain.Source, path string) *chain.Source {
	var found *chain.Source
	for i := range sources {
		if s := &sources[i]; s.Path == path && (found == nil || s.DeliveredBytes > 0) {
			found = s
		}
	}
	return found
}

// whyInChain is a sentence on a source, of which d is what the chain has to say.
func whyInChain(root string, s *chain.Source, d *chain.Diagnostic) string {
	of := fmt.Sprintf("%s of %s bytes", text.Thousands(int(s.Kept)), text.Thousands(int(s.Bytes)))
	switch s.State { //nolint:exhaustive // of a file that is not used more can be said
	case chain.StateKept:
		return "it is in the text, whole: " + of
	case chain.StateTruncated:
		return "it is in the text, and cut: " + of + " are left"
	case chain.StateOmitted:
		return "it is a source, and left out: " + whySource(root, s)
	case chain.StateDuplicate:
		return "it is left out: the same file or text stands nearer, as " + inTree(root, s.DuplicateOf)
	}
	if d != nil && d.Path == s.Path && string(d.Code) == s.Reason {
		return "it is not used: " + d.Detail
	}
	return "it is not used: " + whySource(root, s)
}

// whyNoSource finds the reason why a file is no source.
func whyNoSource(rep *chain.Report, e *fileExplanation, path string) (reason, why string) {
	name := filepath.Base(path)
	_, err := os.Lstat(path)
	switch d := firstAbout(e.Diagnostics, path); {
	case rep.Root == "":
		return string(chain.CodeRootRefused), "there is no chain: the root is refused"
	case errors.Is(err, fs.ErrNotExist):
		return notFound, "there is no such file"
	case !onWay(rep, filepath.Dir(path)):
		return notOnWay, fmt.Sprintf("its folder is not on the way from the root, %s, to %s", rep.Root, rep.Dir)
	case !slices.Contains(candidates(&rep.Options), name):
		return notName, "its name does not count: " + nameAdvice(rep, name)
	case d != nil:
		return string(d.Code), d.Detail
	}
	for i := range rep.Sources {
		if s := &rep.Sources[i]; filepath.Dir(s.Path) == filepath.Dir(path) {
			return notFirst, filepath.Base(s.Path) + " of the same folder comes before it"
		}
	}
	return string(chain.CodeReadError), "its folder could not be searched to the end"
}

// firstAbout is the diagnostic that says most of a file: one of its own, or one of
// its folder.
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

// onWay reports whether a folder is one of the chain's.
func onWay(rep *chain.Report, folder string) bool {
	below := func(base, path string) bool { rel := inTree(base, path); return rel == "." || !filepath.IsAbs(rel) }
	return below(rep.Root, folder) && below(folder, rep.Dir)
}

// candidates are the names that are looked for in a folder of the tree.
func candidates(o *chain.Options) []string {
	return slices.Concat(o.Names, o.FallbackNames, o.LocalNames)
}

// nameAdvice says which names count, and how another one comes to.
func nameAdvice(rep *chain.Report, name string) string {
	s := "those that do are " + strings.Join(candidates(&rep.Options), ", ")
	if filepath.Ext(name) == ".md" {
		s += "; --fallback " + name + ", or fallback_names in the configuration, makes it one"
	}
	return s
}

// printFileExplanation prints the answer, and the chain as what it rests on.
func (a *app) printFileExplanation(e *fileExplanation, rep *chain.Report) {
	const maxWhy = 1000
	a.printf("%s: %s\n", clean(inTree(e.Root, e.Path)), text.Sanitize(e.Why, maxWhy))
	a.printSources(rep)
	a.printAgentsProblems("diagnostics", e.Root, e.Diagnostics)
}
