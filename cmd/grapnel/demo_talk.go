package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

const (
	demoThread    = "demo"
	demoModelName = "gpt-5" // whose cache rules the prediction goes by
)

// converse holds three turns. Before the last one somebody edits AGENTS.md.
func (d *demo) converse(ctx context.Context, eng *runtime.Engine) error {
	first, err := d.turn(ctx, eng, "1", "I live in Lisbon. What is in the service directory?")
	if err != nil {
		return err
	}
	if err := eng.WaitBackground(ctx); err != nil { // the memory reads the turn after its end
		return err
	}
	d.showFirst(first)
	second, err := d.turn(ctx, eng, "2", "Where do I live?")
	if err != nil {
		return err
	}
	d.showMemory(second)
	if err := d.write("AGENTS.md", demoRules("Answer in Portuguese.")); err != nil {
		return unable(err)
	}
	_, err = d.turn(ctx, eng, "3", "Where do I live? Please answer as the rules say.")
	return err
}

// demoTurn is what became of a turn.
type demoTurn struct {
	*manifest.Manifest // of its first prompt

	calls   map[string]demoCall // by tool
	answer  string
	request string // what the model was sent last
}

type demoCall struct {
	asked string // the arguments of the model
	loop.Result
}

// turn is a host's loop, over a model that only pretends.
func (d *demo) turn(ctx context.Context, eng *runtime.Engine, id, message string) (done *demoTurn, err error) {
	where := phases.Context{
		WorkspaceID: "demo", ThreadID: demoThread, TurnID: id, Mode: phases.ModeAgent, Actor: phases.Actor{Kind: "user", ID: "ada"},
		Dir: filepath.Join(d.result.Dir, demoProject, "service"), DirRoot: filepath.Join(d.result.Dir, demoProject),
	}
	t, err := loop.Begin(ctx, eng, where, loop.Options{
		Input: runtime.CompileInput{UserText: message, Provider: compiler.OpenAI, Model: demoModelName, ToolCalling: true},
		Tools: []loop.Tool{d.listFiles(), {Tool: phases.Tool{Name: "shell", Description: "Runs a command."}}},
	})
	if err != nil {
		return nil, err
	}
	done = &demoTurn{calls: map[string]demoCall{}}
	defer func() { err = t.Done(ctx, done.answer, err) }()
	talk := []string{message}
	for {
		p, err := t.Prompt(ctx)
		if err != nil {
			return nil, err
		}
		if done.Manifest == nil {
			done.Manifest = p.Manifest
		}
		talk = append(talk, p.Reminders...)
		done.request = strings.Join(append([]string{p.FullText}, talk...), "\n")
		call, answer := demoModel(done)
		if err := t.Used(ctx, d.usage(done.request)); err != nil {
			return nil, err
		}
		if done.answer = answer; call.Tool == "" {
			return done, nil
		}
		result, err := t.Tool(ctx, call)
		if err != nil {
			return nil, err
		}
		done.calls[call.Tool] = demoCall{string(call.Arguments), result}
		talk = append(talk, result.Text)
	}
}

// usage is what a provider with a prompt cache reports for a request: it reads again what the last one did not begin with.
func (d *demo) usage(request string) phases.Usage {
	same := 0
	for same < min(len(request), len(d.last)) && request[same] == d.last[same] {
		same++
	}
	d.last = request
	read := d.count(request[:same])
	if read -= read % 128; read < 1024 {
		read = 0
	}
	return phases.Usage{InputTokens: d.count(request), CacheReadTokens: read, OutputTokens: 12}
}

// listFiles is a tool of the host's own. It shows the depth that it was called with.
func (d *demo) listFiles() loop.Tool {
	return loop.Tool{
		Tool: phases.Tool{Name: "list_files", Description: "Lists files.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		Call: func(_ context.Context, arguments json.RawMessage) (string, error) {
			found, err := os.ReadDir(filepath.Join(d.result.Dir, demoProject, "service"))
			names := make([]string, len(found))
			for i := range found {
				names[i] = found[i].Name()
			}
			return string(arguments) + ": " + strings.Join(names, ", "), err
		},
	}
}

// demoModel pretends: it looks at what it was sent, calls two tools in the first turn, and answers from the prompt.
func demoModel(t *demoTurn) (call loop.Call, answer string) {
	if t.TurnID == "1" {
		switch len(t.calls) {
		case 0:
			return loop.Call{ID: "call-1", Tool: "list_files", Arguments: json.RawMessage(`{"depth":9}`)}, ""
		case 1:
			return loop.Call{ID: "call-2", Tool: "shell", Arguments: json.RawMessage(`{"command":"cat .env"}`)}, ""
		}
		return call, "There is an AGENTS.md. I may not use the shell."
	}
	if _, known, ok := strings.Cut(t.request, "<MEMORIES>"); ok && strings.Contains(known, "Lisbon") {
		return call, "You live in Lisbon."
	}
	return call, "I do not know."
}

// showFirst shows what the first turn's prompt and calls hold.
func (d *demo) showFirst(t *demoTurn) {
	show, calls := "manifest show "+t.ManifestID, "manifest calls --thread "+demoThread
	rules, house := t.section("agents_md"), t.section("house_rules")
	var from []string
	for _, ref := range rules.SourceRefs {
		from = append(from, strings.TrimPrefix(ref.ID, filepath.Join(d.result.Dir, demoProject)+"/"))
	}
	d.showf("Instructions with owners", show, rules.Owner != "", "the section agents_md is from %s: %s characters, which hold %s", rules.Owner, text.Thousands(rules.Chars), strings.Join(from, " and "))
	rewritten, denied := t.calls["list_files"], t.calls["shell"]
	d.showf("A call that was rewritten", calls, strings.HasPrefix(rewritten.Text, `{"depth":1}`), "the model called list_files %s, and house.shallow made it {\"depth\":1}", rewritten.asked)
	refusal := cmp.Or(denied.Refused, &loop.Refused{})
	d.showf("A call that was denied", calls, refusal.By == "house.guard", "the model called shell %s, and %s denied it: %s (the model was told so)", denied.asked, refusal.By, refusal.Reason)
	cut := cmp.Or(house.Truncation, &phases.Truncation{})
	d.showf("A section that was cut", show, cut.Kept > 0, "house_rules has %d of %d characters: the %s limit cut it", cut.Kept, cut.Original, cut.Limit)
	run, late := firstWhere(t.Runs, func(r *phases.Run) bool { return r.Plugin == "weather" && r.State == phases.StateTimedOut })
	d.showf("A plugin that hangs", "explain weather.forecast --manifest "+t.ManifestID, late && t.answer != "",
		"weather.forecast was stopped after %.0f ms, its section is missing, and the turn went on", run.DurationMS)
}

// showMemory shows what the second turn knew.
func (d *demo) showMemory(t *demoTurn) {
	s := t.section("memory_recall")
	d.showf("A memory", "manifest show --text "+t.ManifestID, s.Owner != "" && strings.Contains(t.answer, "Lisbon"), "asked where, the model answered %q: memory_recall from %s has it", t.answer, s.Owner)
}

// section is an empty one if the prompt does not have it.
func (t *demoTurn) section(id string) manifest.Section {
	s, _ := firstWhere(t.Sections, func(s *manifest.Section) bool { return s.SectionID == id })
	return s
}

// firstWhere returns the first of a list that is wanted, else a zero value and false.
func firstWhere[T any](list []T, wanted func(*T) bool) (found T, ok bool) {
	for i := range list {
		if wanted(&list[i]) {
			return list[i], true
		}
	}
	return found, false
}

// blame shows what the edit between the turns has cost.
func (d *demo) blame(ctx context.Context) error {
	return d.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		blame, err := api.BlameOf(s.Entries(ctx, store.Filter{Thread: demoThread}), 0, func() {})
		if err != nil {
			return err
		}
		r, broke := firstWhere(blame.Turns, func(r *manifest.BlamedTurn) bool { return r.TurnID == "3" && r.Place() == "agents_md" })
		d.showf("What broke the cache", "manifest blame --thread "+demoThread, broke,
			"AGENTS.md was edited before turn 3, which broke the prompt cache at %s of %s: %s tokens were paid again", r.Place(), r.Owner, text.Thousands(r.TokensLost))
		return nil
	})
}

// forge changes a record in a copy of the log, and has it verified.
func (d *demo) forge(ctx context.Context) (err error) {
	path := filepath.Join(d.result.Dir, demoForged)
	if err := os.WriteFile(path, nil, 0o600); err != nil { // SQLite would let others read what it makes
		return unable(err)
	}
	if err := d.withStore(ctx, store.Options{}, func(s *openedStore) error {
		_, err := s.DB().Writer().ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	}); err != nil {
		return err
	}
	s, err := store.Open(ctx, sqliteScheme+path, store.Options{})
	if err != nil {
		return storeError(err)
	}
	defer func() { err = firstOf(err, s.Close()) }()
	if _, err := s.DB().Writer().ExecContext(ctx, "UPDATE manifests SET turn_id = '7' WHERE seq = 1"); err != nil {
		return unable(err)
	}
	verdict, err := s.Verify(ctx, store.Filter{}, manifest.VerifyOptions{})
	if err != nil {
		return storeError(err)
	}
	bad := cmp.Or(verdict.FirstBad, &manifest.Bad{})
	d.showf("A record that was tampered with", "--store "+shellWord(sqliteScheme+path)+" manifest verify", !verdict.OK && verdict.FirstBad != nil,
		"somebody wrote another turn into a copy of the log; verify names the record: seq %d, %s", bad.Seq, bad.Reason)
	return nil
}
