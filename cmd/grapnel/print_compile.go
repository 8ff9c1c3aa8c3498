package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// promptText is the prompt as text: the system prompt, then each message under a
// labelled rule.
func promptText(p *compiler.Prompt) string {
	var b strings.Builder
	b.WriteString(endLine(p.FullText))
	for _, list := range [][]compiler.Message{p.SystemMessages, p.UserMessages} {
		for _, m := range list {
			b.WriteString("\n" + rule(m.Role+" message: "+m.SectionID) + endLine(m.Text))
		}
	}
	return b.String()
}

// endLine ends a text with a newline if it has none.
func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// printPrompt prints the prompt, if there is one.
func (a *app) printPrompt(p *compiler.Prompt) {
	if p != nil {
		a.printf("%s\n", promptText(p))
	}
}

// printTurn prints what is worth looking at in a turn's manifest: first what is
// in the prompt, then what is not, then why. Groups that are empty are left away,
// so that an ordinary turn fits a screen.
func (a *app) printTurn(done *runtime.Compiled, rec *recorder) {
	m := done.Manifest
	a.printHead(m)
	a.printRecorded(m, rec)
	if done.Prompt == nil {
		a.println("there is no prompt: the turn was blocked")
	}
	a.printContent(m)
	a.printReminders(done.Reminders)
	a.printDiagnostics(done.Diagnostics)
	a.printCache(m, nil)
	a.printFingerprints(&m.Fingerprints)
	a.printBudgets(&m.Budgets)
}

// printHead says which manifest this is. What most turns do not have is left
// away.
func (a *app) printHead(m *manifest.Manifest) {
	a.printf("%s", rule("manifest "+m.ManifestID))
	a.printf("profile %s · generation %d · workspace %s · thread %s · turn %s",
		m.Profile, m.Generation, clean(m.WorkspaceID), clean(m.ThreadID), clean(m.TurnID))
	if m.SessionID != "" {
		a.printf(" · session %s", clean(m.SessionID))
	}
	if m.Epoch > 0 {
		a.printf(" · epoch %d", m.Epoch)
	}
	if m.Round > 0 {
		a.printf(" · round %d", m.Round)
	}
	a.println()
}

// printRecorded says where the manifest was kept, or that it was not.
func (a *app) printRecorded(m *manifest.Manifest, rec *recorder) {
	switch why := rec.whyLost(); {
	case rec == nil:
	case why != "":
		a.printf("NOT kept in %s: %s\n", clean(rec.ref.name), oneLine{errors.New(strings.TrimPrefix(why, m.ManifestID+": "))}.Error())
	default:
		a.printf("kept in %s · seq %d · hash %s\n", clean(rec.ref.name), m.Seq, m.Hash)
	}
}

// printContent prints the groups of a manifest that say what went into the
// prompt, and what did not.
func (a *app) printContent(m *manifest.Manifest) {
	a.printSections(m.Sections)
	a.printDocuments(m.Sections)
	a.printLeftOut(m.LeftOut)
	a.printFiles(m.Files)
	a.printRuns(m.Runs, true)
	a.printPlugins("plugins not ready", notReady(m.Plugins))
	a.printTools(m.Tools)
	a.printPolicies(m.Policies)
	a.printAudits("audit events", m.Audits)
}

// printSections prints one row per section, in the order in which they reach the
// model. Tokens have a column where they were counted, and below it the name of
// what counted them: numbers of two tokenizers cannot be compared.
func (a *app) printSections(sections []manifest.Section) {
	header := []string{"section", "owner", "stability", "placement", ">chars", "cut", "fingerprint"}
	counted := slices.ContainsFunc(sections, func(s manifest.Section) bool { return s.Tokens != nil })
	if counted {
		header = slices.Insert(header, tokenColumn, ">tokens")
	}
	t, sum, tokenizer := newTable("sections", header...), 0, ""
	for i := range sections {
		s := &sections[i]
		cells := []any{s.SectionID, s.Owner, s.Stability, s.Placement, text.Thousands(s.Chars), cutText(s.Truncation), s.Fingerprint}
		if counted {
			cells = slices.Insert(cells, tokenColumn, any(tokensText(s.Tokens)))
		}
		if s.Tokens != nil {
			sum, tokenizer = sum+*s.Tokens, s.Tokenizer
		}
		t.add(cells...)
	}
	a.printTable(t)
	if counted {
		a.printf("  %s tokens together, counted as %s\n", text.Thousands(sum), clean(tokenizer))
	}
}

// printDocuments names the revisions that sections are made of, as ID@VERSION.
func (a *app) printDocuments(sections []manifest.Section) {
	t := newTable("documents", "section", "revision", "from")
	for i := range sections {
		for _, ref := range sections[i].SourceRefs {
			if ref.Kind == "document" {
				t.add(sections[i].SectionID, ref.ID, ref.Label)
			}
		}
	}
	a.printTable(t)
}

// tokenColumn is where the tokens of a section stand: behind its characters.
const tokenColumn = 5

// tokensText is a number of tokens; empty where none was counted.
func tokensText(n *int) string {
	if n == nil {
		return ""
	}
	return text.Thousands(*n)
}

// cutText says which limit cut a text, and what it kept.
func cutText(t *phases.Truncation) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s %s/%s", t.Limit, text.Thousands(t.Kept), text.Thousands(t.Original))
}

// printLeftOut prints what did not reach the prompt. The reasons are the
// manifest's words, so that they can be looked up.
func (a *app) printLeftOut(list []phases.LeftOut) {
	t := newTable("left out", "id", "owner", "reason", ">chars")
	for _, l := range list {
		t.add(l.ID, l.Owner, l.Reason, text.Thousands(l.Chars))
	}
	a.printTable(t)
}

// printRuns prints a ledger; of several phases with a column that names them.
func (a *app) printRuns(runs []phases.Run, several bool) {
	header := []string{"subscription", "stage", "state", "code", ">ms", ">contributions"}
	if several {
		header = slices.Insert(header, 0, "phase")
	}
	t := newTable("hook runs", header...)
	for i := range runs {
		r := &runs[i]
		cells := []any{r.Subscription, r.Stage, r.State, codeText(r), r.DurationMS, len(r.Contributions)}
		if several {
			cells = slices.Insert(cells, 0, any(r.Phase))
		}
		t.add(cells...)
	}
	a.printTable(t)
}

// codeText is a run's cause with the plugin's own word; of a shadow hook, what it
// would have decided.
func codeText(r *phases.Run) string {
	if r.State == phases.StateShadowed && r.Verdict != "" {
		return strings.TrimSuffix("would "+string(r.Verdict)+": "+r.ReasonCode, ": ")
	}
	if r.PluginCode == "" {
		return r.Code
	}
	return r.Code + ": " + r.PluginCode
}

// notReady are the rows that somebody should look at, degraded plugins included.
func notReady(rows []phases.PluginRow) []phases.PluginRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r phases.PluginRow) bool { return r.State == phases.PluginReady })
}

// printPlugins prints rows of plugins.
func (a *app) printPlugins(title string, rows []phases.PluginRow) {
	t := newTable(title, "plugin", "state", "version", "sha256", "tier", ">restarts", "code", "detail")
	for i := range rows {
		r := &rows[i]
		detail := strings.TrimSuffix(r.Message, " ("+r.Code+")")
		t.add(r.Plugin, r.State, r.Version, shortSum(r.SHA256), r.Tier, r.Restarts, r.Code, detail)
	}
	a.printTable(t)
}

// shortSum is enough of a checksum to tell it from others.
func shortSum(sum string) string {
	const digits = 12
	if len(sum) == 64 {
		return sum[:digits] + "…"
	}
	return sum
}

// printTools prints the tools that the model is offered, and those that it may
// ask for, by owner.
func (a *app) printTools(tools []manifest.Tool) {
	header := []string{"tool", "owner", "bundle", "hash"}
	hidden := slices.ContainsFunc(tools, func(t manifest.Tool) bool { return t.HiddenDomain != "" })
	if hidden {
		header = append(header, "hidden in")
	}
	t := newTable("tools", header...)
	for _, tool := range tools {
		cells := []any{tool.Name, tool.Owner, tool.BundleID, tool.Hash}
		if hidden {
			cells = append(cells, tool.HiddenDomain)
		}
		t.add(cells...)
	}
	a.printTable(t)
}

// printPolicies prints the policies in force and who set them.
func (a *app) printPolicies(list []phases.PolicyEntry) {
	t := newTable("policies", "policy", "value", ">priority", "owner")
	for _, p := range list {
		t.add(p.Domain+"/"+p.Key, string(p.Value), p.Priority, p.Owner)
	}
	a.printTable(t)
}

// printReminders prints the beginnings of reminders; JSON has them whole.
func (a *app) printReminders(list []phases.MergedReminder) {
	t := newTable("reminders", "type", "owner", "text")
	for _, r := range list {
		t.add(r.Type, r.Owner, r.Text)
	}
	a.printTable(t)
}

// printDiagnostics prints warnings and errors, each once, and counts the rest. A
// plugin that is down is remarked upon by every phase of a turn.
func (a *app) printDiagnostics(list []phases.Diagnostic) {
	t := newTable("diagnostics", "severity", "code", "about", "message")
	seen := map[string]bool{}
	remarks := 0
	for i := range list {
		d := &list[i]
		about := d.Subscription
		if about == "" {
			about = d.Plugin
		}
		if about == "" {
			about = d.Slot
		}
		key := strings.Join([]string{string(d.Severity), d.Code, about, d.Slot, d.Message}, "\x00")
		switch {
		case seen[key]:
		case d.Severity == phases.SeverityWarning || d.Severity == phases.SeverityError:
			t.add(d.Severity, d.Code, about, d.Message)
		default:
			remarks++
		}
		seen[key] = true
	}
	a.printTable(t)
	if remarks > 0 {
		a.printf("\n%d further remarks without a warning; --json shows them\n", remarks)
	}
}

// printFingerprints prints what to compare when a prompt should not have changed.
func (a *app) printFingerprints(f *manifest.Fingerprints) {
	t := newTable("")
	t.add("full", f.FingerprintFull)
	t.add("stable", f.FingerprintStable)
	t.add("dynamic", f.FingerprintDynamic)
	t.add("tools", f.FingerprintTools)
	a.println("\nfingerprints")
	a.printTable(t)
}

// printBudgets prints time and text of the turn and of each phase. A phase has no
// budget of text of its own.
func (a *app) printBudgets(b *manifest.Budgets) {
	t := newTable("", "", ">used ms", ">granted ms", ">used chars", ">granted chars")
	add := func(name string, b manifest.Budget) {
		chars := [2]string{}
		if b.GrantedChars > 0 {
			chars = [2]string{text.Thousands(b.UsedChars), text.Thousands(b.GrantedChars)}
		}
		t.add(name, b.UsedMS, b.GrantedMS, chars[0], chars[1])
	}
	add("turn", b.Turn)
	for _, p := range b.Phases {
		add(string(p.Phase), p.Budget)
	}
	a.println("\nbudgets")
	a.printTable(t)
}
