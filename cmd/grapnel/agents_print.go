package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// printChain prints a chain: the tree from the root to the folder with what became
// of each file, the limits, and what there is to say of it.
func (a *app) printChain(rep *chain.Report, r *chain.Rendering, in *agentsInForce) {
	a.printf("%s", rule("agents chain"))
	a.printChainHead(rep, in)
	a.printSources(rep)
	a.printChainBudget(rep, r, in.chars)
	for _, l := range in.cutBy(r) {
		a.printf("cut by  %s: %s\n", l.name, l.remedy)
	}
	if n := text.Chars(rep.Message); n > in.taken && in.chars == math.MaxInt {
		a.printf("note    a prompt takes %s characters of these %s, as budget.chars of the subscription agentsdoc.prompt says\n",
			text.Thousands(in.taken), text.Thousands(n))
	}
	a.printAgentsProblems("diagnostics", rep.Root, rep.Diagnostics)
	if rep.Text == "" {
		a.println("\nthere is no text: the prompt has nothing from instruction files")
		return
	}
	a.printf("\n%s characters of text, %s; --text prints it\n", text.Thousands(r.Chars), placementText(r.Placement))
}

// printChainHead says where the chain begins, and by which rules.
func (a *app) printChainHead(rep *chain.Report, in *agentsInForce) {
	switch {
	case rep.Root == "":
		a.printf("dir     %s\nroot    none: no file is read", clean(rep.Dir))
	case rep.Options.Root != "":
		a.printf("dir     %s\nroot    %s, as the options say", clean(rep.Dir), clean(rep.Root))
	case rep.RootFound:
		a.printf("dir     %s\nroot    %s, which has %s", clean(rep.Dir), clean(rep.Root), clean(foundMarker(rep)))
	case len(rep.Options.Markers) == 0:
		a.printf("dir     %s\nroot    the same: the options have no markers", clean(rep.Dir))
	default:
		a.printf("dir     %s\nroot    the same: no folder above it counts as marked by %s", clean(rep.Dir), clean(strings.Join(rep.Options.Markers, " or ")))
	}
	a.printf("\npreset  %s", rep.Preset)
	if rep.Options.Trust != option.TrustAll {
		a.printf(", trust %s", rep.Options.Trust)
	}
	a.println()
	if in.off != "" {
		a.printf("note    %s: a prompt by it has none of this\n", clean(in.off))
	}
}

// foundMarker is the marker that the root has.
func foundMarker(rep *chain.Report) string {
	for _, name := range rep.Options.Markers {
		if _, err := os.Lstat(filepath.Join(rep.Root, name)); err == nil {
			return name
		}
	}
	return "a marker" // a moment ago
}

// maxIndent bounds how far the tree goes to the right: a path may have hundreds of
// folders.
const maxIndent = 12

// branch are the strokes of the tree.
const (
	branchFile = "├─ "
	branchLast = "└─ "
	branchStep = "   "
)

// printSources prints the tree.
func (a *app) printSources(rep *chain.Report) {
	if rep.Root == "" {
		return
	}
	t := &sourceTable{root: rep.Root, home: rep.Options.Home}
	at := 0
	for at < len(rep.Sources) && (rep.Sources[at].Scope == chain.ScopeManaged || rep.Sources[at].Scope == chain.ScopeGlobal) {
		t.source("", &rep.Sources[at])
		at++
	}
	t.folders(rep.Dir, rep.Sources[at:])
	a.println()
	a.printTable(t.table())
}

// sourceTable collects the rows of the tree.
type sourceTable struct {
	root, home string
	rows       [][]string
}

// table is the rows below their header. Cells that say nothing stay empty here: a
// row of dashes for each folder would hide the files.
func (t *sourceTable) table() *table {
	out := newTable("", "file", "scope", ">kept", ">bytes", "", "state", "why")
	out.rows = t.rows
	return out
}

// folders adds the folders from the root to the working folder, those without a
// file joined with the next.
func (t *sourceTable) folders(dir string, sources []chain.Source) {
	note := ""
	if len(sources) == 0 && inTree(t.root, dir) == "." {
		note = nothingHere
	}
	t.folder(".", note)
	depth, path, skipped := 0, t.root, ""
	elems := strings.Split(inTree(t.root, dir), "/")
	if inTree(t.root, dir) == "." {
		elems = nil
	}
	for i := 0; ; i++ {
		var here []chain.Source
		for len(sources) > 0 && filepath.Dir(sources[0].Path) == path {
			here, sources = append(here, sources[0]), sources[1:]
		}
		last := i == len(elems)
		if i > 0 && (len(here) > 0 || last) {
			note := ""
			if last && len(here) == 0 {
				note = nothingHere
			}
			t.folder(indent(depth)+branchLast+skipped, note)
			depth, skipped = depth+1, ""
		}
		for j := range here {
			stroke := branchFile
			if last && j == len(here)-1 {
				stroke = branchLast
			}
			t.source(indent(depth)+stroke, &here[j])
		}
		if last {
			return
		}
		path = filepath.Join(path, elems[i])
		skipped += clean(elems[i]) + "/"
	}
}

// nothingHere is said of the working folder where it has no file.
const nothingHere = "has no file of its own"

// indent is the blank before a stroke.
func indent(depth int) string { return strings.Repeat(branchStep, min(depth, maxIndent)) }

// folder adds a folder's row.
func (t *sourceTable) folder(name, note string) {
	t.rows = append(t.rows, []string{name, "", "", "", "", "", note})
}

// source adds a file's row.
func (t *sourceTable) source(before string, s *chain.Source) {
	name := filepath.Base(s.Path)
	if before == "" {
		name = s.Path
		if rest := inTree(t.home, name); rest != name {
			name = "~/" + rest
		}
	}
	t.rows = append(t.rows, []string{
		before + clean(name), string(s.Scope), text.Thousands(int(s.Kept)), text.Thousands(int(s.Bytes)), bar(s), string(s.State), clean(whySource(t.root, s)),
	})
}

// bar shows how much of a file is left.
func bar(s *chain.Source) string {
	const width = 10
	if s.Bytes <= 0 || s.State == chain.StateSkipped || s.State == chain.StateDuplicate {
		return ""
	}
	full := int(math.Ceil(width * float64(min(s.Kept, s.Bytes)) / float64(s.Bytes)))
	if full == width && s.Kept < s.Bytes {
		full-- // what is not whole does not look it
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// whySource says in words why a file is not whole in the text; empty for one that
// is.
func whySource(root string, s *chain.Source) string {
	switch s.State { //nolint:exhaustive // the others have a reason
	case chain.StateTruncated:
		return text.Thousands(int(s.Bytes-s.Kept)) + " bytes cut"
	case chain.StateDuplicate:
		return "the same as " + inTree(root, s.DuplicateOf)
	case chain.StateKept:
		return ""
	}
	switch s.Reason {
	case string(chain.CodeOmittedBudget):
		return "no room for it"
	case string(chain.CodeOmittedCount):
		return "more files than are allowed"
	case chain.ReasonBlank:
		return "it has no text"
	case chain.ReasonExcluded:
		return "the options exclude it"
	case string(chain.CodeEmptyOverride):
		return "an override without text"
	case string(chain.CodeUntrustedRoot):
		return "its root is not trusted"
	case string(chain.CodeBinary):
		return "it is not text"
	case string(chain.CodeSymlinkEscape):
		return "its link leads out of the tree"
	case string(chain.CodeGitMetadata):
		return "it leads into git's own files"
	case string(chain.CodePermission):
		return "it may not be read"
	case string(chain.CodeReadError):
		return "it cannot be read"
	}
	return strings.ReplaceAll(s.Reason, "_", " ")
}

// printChainBudget prints what is used of the limits.
func (a *app) printChainBudget(rep *chain.Report, r *chain.Rendering, chars int) {
	limits := &rep.Options.Budget
	used, files := len(rep.Text), 0
	if rep.Options.Layout != option.LayoutDelimited {
		used = 0
	}
	for i := range rep.Sources {
		s := &rep.Sources[i]
		if s.DeliveredBytes == 0 {
			continue
		}
		files++
		// These layouts count the files' own bytes, and the user's file is free.
		if rep.Options.Layout != option.LayoutDelimited && s.Scope != chain.ScopeGlobal && s.Scope != chain.ScopeManaged {
			used += int(s.Kept)
		}
	}
	line := []string{amount(used, limits.Total, true) + " bytes"}
	if chars != math.MaxInt {
		line = append(line, amount(r.Chars, chars, true)+" characters")
	}
	line = append(line, fmt.Sprintf("%s %s", amount(files, limits.Files, limits.Files > 0), plural(max(files, limits.Files), "file", "files")))
	a.printf("\nbudget  %s\n", strings.Join(line, " · "))
}

// amount is a number and its limit, if there is one.
func amount(n, limit int, bounded bool) string {
	if !bounded {
		return text.Thousands(n)
	}
	return text.Thousands(n) + " of " + text.Thousands(limit)
}

// placementText says where a text is put before the model.
func placementText(p option.Placement) string {
	switch p {
	case option.PlaceUserMessage:
		return "a message of the user before the first one"
	case option.PlaceSystemMessage:
		return "a system message of its own"
	default:
		return "the section agents_md of the system prompt"
	}
}

// printAgentsProblems prints rows of diagnostics, with paths as they are in the
// tree.
func (a *app) printAgentsProblems(title, root string, rows []chain.Diagnostic) {
	t := newTable(title, "severity", "code", "path", "detail")
	for i := range rows {
		d := &rows[i]
		t.add(d.Severity, d.Code, inTree(root, d.Path), d.Detail)
	}
	a.printTable(t)
}
