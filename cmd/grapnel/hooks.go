package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/commandhooks"
)

type hooksImport struct {
	Format  string            `json:"format"  jsonschema:"the agent whose rules were taken"`
	File    string            `json:"file"`
	Hooks   []importedHook    `json:"hooks"   jsonschema:"what would run"`
	Skipped []scripts.Skipped `json:"skipped" jsonschema:"what cannot be carried"`
	Notes   []string          `json:"notes"   jsonschema:"what to know before it is used"`
	Config  string            `json:"config"  jsonschema:"a plugin for the configuration, as YAML"`
}

type importedHook struct {
	agent.Hook

	Phases    []phases.Phase `json:"phases"`
	TimeoutMS int64          `json:"timeout_ms"`
}

type hooksImportFlags struct {
	Host string `flag:"host" suggest:"claude|codex|copilot|cursor|gemini" usage:"the {AGENT} that the file is for: claude, codex, copilot, cursor, gemini (default by its place and content)"`
}

func (a *app) hooksImport(_ context.Context, f *hooksImportFlags, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return unable(err)
	}
	data, err := a.readInput("", path)
	if err != nil {
		return err
	}
	format := f.Host
	if f.Host == "" {
		format = scripts.Guess(path, data)
	}
	home, _ := os.UserHomeDir() // without one no file is the user's
	file, err := scripts.Read(format, path, home, data)
	if err != nil {
		return usagef("%w", err)
	}
	r := hooksImport{Format: format, File: path, Hooks: []importedHook{}, Skipped: append([]scripts.Skipped{}, file.Skipped...), Notes: []string{}}
	rewriting := []string{}
	for i := range file.Hooks {
		h := &file.Hooks[i]
		r.Hooks = append(r.Hooks, importedHook{*h, commandhooks.Phases(h), h.Timeout.Milliseconds()}) //nolint:contextcheck // it only describes
		for _, why := range scripts.Never(h) {
			r.Notes = append(r.Notes, h.ID+": "+why)
		}
		notes, rewrites := lookInto(h)
		r.Notes = append(r.Notes, notes...)
		if rewrites {
			rewriting = append(rewriting, h.ID)
		}
	}
	r.Config = pluginFor(&r, file, rewriting) //nolint:contextcheck // as above
	return a.print(r, func() { a.printImport(&r) })
}

// lookInto reads the script of a hook, if there is one in plain sight, for what it may expect.
func lookInto(h *agent.Hook) (notes []string, rewrites bool) {
	var text strings.Builder
	text.WriteString(h.Command)
	places := strings.NewReplacer("$CLAUDE_PROJECT_DIR", h.Project, "${CLAUDE_PROJECT_DIR}", h.Project, "$GEMINI_PROJECT_DIR", h.Project,
		"$CURSOR_PROJECT_DIR", h.Project, `"`, "", "'", "")
	command := places.Replace(h.Command + " " + strings.Join(h.Args, " "))
	for _, word := range strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t;|&()", c) }) {
		if !filepath.IsAbs(word) {
			word = filepath.Join(cmp.Or(h.Dir, h.Project), word)
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
			script, _ := os.ReadFile(word) // it is only looked at
			text.Write(script)
		}
	}
	if strings.Contains(text.String(), "transcript") {
		notes = append(notes, h.ID+" mentions the transcript: it is given an empty one, as Grapnel does not have it")
	}
	if h.Project == "" && h.Dir == "" && strings.Contains(h.Command, "./") {
		notes = append(notes, h.ID+" names a file by a relative path: it is looked for in the directory of each session")
	}
	words := []string{"updatedInput", "modifiedArgs", "updated_input"}
	if h.Agent.Name == "gemini" {
		words = append(words, `"hookSpecificOutput"`)
	}
	rewrites = h.Step == agent.StepToolCall && !h.Background && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text.String(), w) })
	return notes, rewrites
}

// unsaid is the time that Claude Code and Codex give a hook whose file says none. Nobody means it: import proposes less.
const (
	unsaid   = 10 * time.Minute
	proposed = time.Minute
)

// pluginFor is the declaration of a plugin that runs a file's hooks, with the least grants.
func pluginFor(r *hooksImport, file *scripts.File, rewriting []string) string {
	var skip []string
	for _, s := range file.Skipped {
		if s.Decides {
			skip = append(skip, s.ID)
		}
	}
	budgets, kinds, sees := map[phases.Phase]time.Duration{}, map[string]bool{}, map[string]bool{}
	var guards []string // what must fail as long as the plugin has not started
	for _, d := range commandhooks.Describe(file.Hooks, rewriting) {
		for _, k := range d.Kinds {
			kinds[string(k)] = true
		}
		if slices.Contains(d.Kinds, phases.KindDecision) && d.Phase != phases.PreEnd && d.OnFailure.For(phases.CauseUnavailable) != phases.BestEffort {
			guards = append(guards, fmt.Sprintf("      %s_hooks.%s: {phase: %s, on_failure: fail_closed}\n", r.Format, d.Name, d.Phase))
		}
		for _, n := range d.Needs {
			if n != phases.NeedsNothing {
				sees[n] = true
			}
		}
		row, _ := phases.Standard().Lookup(d.Phase)
		wait := d.Timeout.D()
		if wait == unsaid {
			wait = proposed
		}
		if row.Budget > 0 && wait > row.Budget {
			budgets[d.Phase] = max(budgets[d.Phase], wait)
		}
	}
	var b strings.Builder
	if len(budgets) > 0 {
		b.WriteString("budgets:\n  phases:\n")
	}
	for _, phase := range slices.Sorted(maps.Keys(budgets)) {
		fmt.Fprintf(&b, "    %s: {time: %s}\n", phase, short(budgets[phase]))
	}
	fmt.Fprintf(&b, "plugins:\n  - name: %s_hooks\n    builtin: commandhooks\n", r.Format)
	fmt.Fprintf(&b, "    grants: {contribute: [%s], see: [%s]}\n", listed(kinds), listed(sees))
	b.WriteString("    env: {pass: [PATH, HOME, USER, SHELL, LANG]}\n")
	if len(guards) > 0 {
		b.WriteString("    subscriptions: # they deny also as long as the plugin has not started\n" + strings.Join(guards, ""))
	}
	b.WriteString("    config:\n")
	path, _ := quoted(r.File) // a text always encodes
	fmt.Fprintf(&b, "      format: %s\n      files: [%s]\n", r.Format, path)
	if len(rewriting) > 0 {
		fmt.Fprintf(&b, "      rewrites: [%s]\n", strings.Join(rewriting, ", "))
	}
	if len(skip) > 0 {
		fmt.Fprintf(&b, "      skip: [%s] # they could forbid something, and are not run\n", strings.Join(skip, ", "))
	}
	return b.String()
}

func listed(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}

func (a *app) printImport(r *hooksImport) {
	a.printf("%s, read as the hooks of %s\n\n", clean(r.File), r.Format)
	printList(a, "would run", "hook|phase|?matcher|>timeout|command", r.Hooks, func(h *importedHook) cells {
		matcher := strings.TrimSpace(h.Matcher + " " + h.If)
		return cells{h.ID, joined(h.Phases), matcher, short(h.Timeout), strings.Join(append([]string{h.Command}, h.Args...), " ")}
	})
	if len(r.Skipped) > 0 {
		printList(a, "cannot be carried", "hook|?matcher|command|why", r.Skipped, func(s *scripts.Skipped) cells {
			return cells{s.ID, s.Matcher, s.What, s.Why}
		})
	}
	for _, note := range r.Notes {
		a.printf("note: %s\n", clean(note))
	}
	if len(r.Hooks)+len(r.Skipped) == 0 {
		a.println("there are no hooks in it")
	}
	if len(r.Hooks) > 0 {
		a.printf("\nFor the configuration (grapnel.yaml):\n\n%s", r.Config)
	}
}

// short is a duration without seconds that are zero.
func short(d time.Duration) string {
	if text, ok := strings.CutSuffix(d.String(), "m0s"); ok {
		return text + "m"
	}
	return d.String()
}
