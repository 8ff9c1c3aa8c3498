package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

type manifestText struct {
	ManifestID string           `json:"manifest_id" jsonschema:"the manifest whose prompt it is"`
	Prompt     *compiler.Prompt `json:"prompt"      jsonschema:"the prompt as it was compiled, without a cache plan"`
	Checked    bool             `json:"checked"     jsonschema:"its hashes are those of the manifest"`
}

type showFlags struct {
	filterFlags

	Text bool `flag:"text" usage:"print the prompt, if its texts were kept"`
}

func (a *app) manifestShow(ctx context.Context, s *openedStore, f *showFlags, args []string) error {
	if !api.IsManifestID(args[0]) {
		return usagef("%q is not a manifest's id or the beginning of one; see: grapnel manifest list", args[0])
	}
	m, err := api.Find(ctx, s, args[0], f.filter())
	switch {
	case err != nil:
		return notThere(err)
	case f.Text:
		return a.manifestText(ctx, s, m)
	}
	usage, err := s.Judge(ctx, m)
	if err != nil {
		return err
	}
	return a.print(m, func() { a.printStored(m, usage) })
}

// manifestText prints the prompt even if a text was altered.
func (a *app) manifestText(ctx context.Context, s *openedStore, m *manifest.Manifest) error {
	p, err := compiler.Rebuild(m, func(hash string) (string, error) { return s.Text(ctx, hash) })
	switch {
	case store.HasCode(err, store.CodeNotFound):
		return refused(fmt.Errorf("the texts of the manifest %s %s", m.ManifestID, whyNoTexts(m)))
	case err != nil:
		return unable(err)
	case len(m.Sections) == 0:
		return refused(fmt.Errorf("the manifest %s has no prompt: %s", m.ManifestID, whyNoPrompt(m)))
	}
	checked := s.checkPrompt(m, &p)
	printed := a.print(manifestText{m.ManifestID, &p, checked == nil}, func() { a.out.WriteString(promptText(&p)) })
	return cmp.Or(printed, checked)
}

// checkPrompt compares a rebuilt prompt with the hashes of its manifest.
func (s *openedStore) checkPrompt(m *manifest.Manifest, p *compiler.Prompt) error {
	key, err := s.keyOf(m.HashFull, "the prompt above")
	if err != nil {
		return err
	}
	var differ []string
	for _, part := range []struct{ name, text, want string }{
		{"stable", p.StableText, m.HashStable},
		{"dynamic", p.DynamicText, m.HashDynamic},
		{"full", p.FullText, m.HashFull},
	} {
		if manifest.Hash(part.text, key) != part.want {
			differ = append(differ, "hash_"+part.name)
		}
	}
	for _, msg := range slices.Concat(p.SystemMessages, p.UserMessages) {
		if s := byID(m)[msg.SectionID]; s == nil || s.Hash != manifest.Hash(msg.Text, key) {
			differ = append(differ, "the message "+msg.SectionID)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return refused(fmt.Errorf("the prompt above is not the one that was compiled: %s of the manifest %s %s; see: grapnel manifest verify",
		strings.Join(differ, ", "), m.ManifestID, words.Plural(len(differ), "differs", "differ")))
}

// whyNoPrompt says why a record has no sections.
func whyNoPrompt(m *manifest.Manifest) string {
	switch m.Kind { //nolint:exhaustive // a prompt
	case manifest.KindEvents:
		return "this is what happened after the last one" + words.If(m.TurnID == "", ", or outside of a turn")
	case manifest.KindErasure:
		return "this is the record of an erasure"
	}
	return cmp.Or(words.If(m.Blocked, "the turn was blocked"), "nothing was added to it")
}

// printErasure prints what was erased, for whom and why; nothing for nil.
func (a *app) printErasure(e *manifest.Erasure) {
	if e == nil {
		return
	}
	t := newTable("", "")
	t.add("erased", fmt.Sprintf("%s that %s named, %s", words.Count(e.Texts, "text", "texts"), manifests(e.Records), clock(e.At)))
	t.add("by", e.By)
	t.add("reason", e.Reason)
	t.addSome("workspace", e.WorkspaceID)
	t.addSome("thread", e.ThreadID)
	t.addSome("person", e.Actor)
	t.addSome("older than", words.If(!e.Before.IsZero(), clock(e.Before)))
	a.heading("\nerasure")
	a.printTable(t)
}

func (a *app) printStored(m *manifest.Manifest, usage *manifest.Usage) {
	a.printHead(m)
	a.printf("created %s · seq %d · compiler %s\n", clock(m.CreatedAt), m.Seq, clean(m.CompilerVersion))
	if len(m.Sections) == 0 {
		a.println("there is no prompt: " + whyNoPrompt(m))
	}
	a.printErasure(m.Erasure)
	a.printContent(m)
	a.printHanded(m.Reminders)
	rows := make([]phases.Diagnostic, len(m.Diagnostics))
	for i, d := range m.Diagnostics { // messages are there where they were safe to keep
		rows[i] = phases.Diagnostic{Code: d.Code, Severity: d.Severity, Message: d.Message, Subscription: d.HookSource, Slot: d.SectionID}
	}
	a.printDiagnostics(rows)
	a.printCache(m, usage)
	a.printFingerprints(&m.Fingerprints)
	a.printBudgets(&m.Budgets)
	a.heading("\nchain")
	a.printFields("hash", m.Hash, "prev", m.Prev, "content", m.ContentHash)
}

// printCache prints what the provider's prompt cache was expected to do, what the provider reported, and which
// section broke the prefix. The first prompt of a thread has nothing to show.
func (a *app) printCache(m *manifest.Manifest, u *manifest.Usage) {
	c := &m.Cache
	tokens := func(n int) string { return words.Count(n, "token", "tokens") }
	t := newTable("", "")
	if c.Predicted != nil {
		t.add("predicted", tokens(*c.Predicted)+words.If(*c.Predicted == 0 && c.Cause != "", " ("+string(c.Cause)+")"))
	}
	if u != nil {
		t.add("actual", fmt.Sprintf("%s of %s in%s, %s out", tokens(u.CacheReadTokens), text.Thousands(u.InputTokens),
			words.If(u.CacheWriteTokens > 0, fmt.Sprintf(", %s written to the cache", text.Thousands(u.CacheWriteTokens))), text.Thousands(u.OutputTokens)))
		t.add("reported", clock(u.ReportedAt)+cmp.Or(words.If(c.OfAgent, ", for "+words.Count(u.Rounds, "request", "requests")+" of the agent"), words.If(u.Rounds == 1, ", for this prompt alone"), fmt.Sprintf(", for %d rounds up to this one", u.Rounds)))
	}
	if c.Cause != "" {
		t.add("broke at", styled{caution, c.Place() + words.If(c.Owner != "", " ("+c.Owner+")") + ": " + c.Words() + words.If(c.TokensLost > 0, ", "+tokens(c.TokensLost)+" lost")})
	}
	t.addSome("broke at", words.If(c.OfAgent, notKnownBreak))
	if len(t.rows) == 0 {
		return
	}
	var places []string
	for _, b := range c.Plan.Breakpoints {
		places = append(places, "after "+string(b.After)+words.If(b.SectionID != "", " ("+b.SectionID+")"))
	}
	t.addSome("breakpoints", strings.Join(places, ", "))
	a.heading("\nprompt cache")
	a.printTable(t)
}

func (a *app) manifestDiff(ctx context.Context, f *filterFlags, args []string) error {
	if len(args) != 2 {
		return usagef("diff needs two manifests: ids, latest, or files; see: grapnel manifest diff --help")
	}
	var both [2]*manifest.Manifest
	var usages [2]*manifest.Usage
	for i, arg := range args {
		var err error
		if both[i], usages[i], err = a.manifestNamed(ctx, arg, f.filter()); err != nil {
			return err
		}
	}
	d := manifest.Diff(both[0], both[1], usages[0], usages[1])
	if api.IsManifestID(args[0]) && api.IsManifestID(args[1]) {
		if err := a.addTexts(ctx, both[0], both[1], &d); err != nil {
			return err
		}
	}
	return a.answer(d.Same, d, func() { a.printDiff(both[0], both[1], &d) })
}

// A missing manifest is an error, not a difference.
func (a *app) manifestNamed(ctx context.Context, arg string, f store.Filter) (m *manifest.Manifest, usage *manifest.Usage, err error) {
	if !api.IsManifestID(arg) {
		r, err := a.readManifest("", arg)
		if err != nil {
			return nil, nil, err
		}
		return &r.Manifest, nil, nil
	}
	err = a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		if m, err = api.Find(ctx, s, arg, f); err == nil {
			usage, err = s.Judge(ctx, m)
		}
		return err
	})
	return m, usage, err
}

func (a *app) printDiff(from, to *manifest.Manifest, d *manifest.Difference) {
	t := newTable("", "")
	t.add("from", from.ManifestID, clock(from.CreatedAt), "thread "+from.ThreadID, "turn "+from.TurnID)
	t.add("to", to.ManifestID, clock(to.CreatedAt), "thread "+to.ThreadID, "turn "+to.TurnID)
	a.printTable(t)
	if d.Same {
		a.println("\nthe same sections, budgets, policies, tools, plugins, runs, reminders, files, model, configuration and build" +
			words.If(from.History != nil && to.History != nil, ", and the conversation has at most grown"))
		return
	}
	a.printSectionChanges(from, to, &d.Sections)
	t = newTable("budgets", "budget|what|>from ms|>to ms|>from chars|>to chars")
	for _, c := range d.Budgets {
		ms, chars := grantOf(c.From)
		toMS, toChars := grantOf(c.To)
		t.add(c.Name, mark(c.What), ms, toMS, chars, toChars)
	}
	a.printTable(t)
	printList(a, "policies", "policy|what|from|to", d.Policies, func(c *manifest.Change[manifest.PolicySlot]) cells {
		return cells{c.Name, mark(c.What), policyText(c.From), policyText(c.To)}
	})
	printList(a, "tools", "tool|what|from|to", d.Tools, func(c *manifest.Change[manifest.ToolSlot]) cells {
		return cells{c.Name, mark(c.What), toolText(c.From), toolText(c.To)}
	})
	a.printOrigins(d)
}

// printSectionChanges prints one row per section that differs, in the later prompt's order, then those that are gone.
func (a *app) printSectionChanges(from, to *manifest.Manifest, s *manifest.SectionChanges) {
	before, after := byID(from), byID(to)
	t := newTable("sections", "section|what|owner|>from chars|>to chars|?>from tokens|?>to tokens")
	for _, id := range slices.Concat(to.SectionIDs, s.Removed) {
		what := changeText(id, s)
		if what == "" {
			continue
		}
		var owners, chars, tokens [2]string
		for i, section := range []*manifest.Section{before[id], after[id]} {
			if section != nil {
				owners[i], chars[i], tokens[i] = section.Owner, text.Thousands(section.Chars), tokensText(section.Tokens)
			}
		}
		owner := cmp.Or(owners[0], owners[1])
		if owners[0] != owners[1] && owners[0] != "" && owners[1] != "" {
			owner = owners[0] + " → " + owners[1]
		}
		t.add(id, mark(what), owner, chars[0], chars[1], tokens[0], tokens[1])
	}
	a.printTable(t)
}

func byID(m *manifest.Manifest) map[string]*manifest.Section {
	found := make(map[string]*manifest.Section, len(m.Sections))
	for i := range m.Sections {
		found[m.Sections[i].SectionID] = &m.Sections[i]
	}
	return found
}

func changeText(id string, s *manifest.SectionChanges) string {
	var changes []string
	for _, group := range []struct {
		word string
		ids  []string
	}{{"added", s.Added}, {"removed", s.Removed}, {"changed", s.Changed}, {"moved", s.Moved}, {"re-owned", s.Reowned}} {
		if slices.Contains(group.ids, id) {
			changes = append(changes, group.word)
		}
	}
	return strings.Join(changes, ", ")
}

// grantOf are the cells of a granted budget: time and text.
func grantOf(g *manifest.Grant) (ms, chars string) {
	if g == nil {
		return "", ""
	}
	return words.Millis(g.GrantedMS), words.If(g.GrantedChars > 0, text.Thousands(g.GrantedChars))
}

func policyText(p *manifest.PolicySlot) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s by %s, priority %d", p.Value, p.Owner, p.Priority)
}

func toolText(t *manifest.ToolSlot) string {
	if t == nil {
		return ""
	}
	return t.Owner + words.If(t.BundleID != "", " ("+t.BundleID+")") + " " + t.Hash + words.If(t.HiddenDomain != "", " hidden in "+t.HiddenDomain)
}
