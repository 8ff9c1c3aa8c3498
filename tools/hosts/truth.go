package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/store"
)

// leastOwned is how much of what the model got must be on record with an owner.
const leastOwned = 0.98

const lease = "The lease of this house ends in May."

// leased brings a stable section, and keeps texts.
const leased = `  - name: house
    builtin: scripted
    grants: {contribute: [prompt_section], sections: [lease], stable_sections: [lease]}
    config:
      hooks:
        - id: lease
          phase: turn.pre_prompt_compile
          respond: [{kind: prompt_section, section_id: lease, title: Lease, stability: stable, content: "` + lease + `"}]
manifest: {keep_text: true}
`

// tidying is a mod with a section of its own.
const tidying = `on("prompt.compose", async ($, e, next) => { const r = await next(e); return {sections: [...r.sections, {id: "other:tidy", text: "Keep the house tidy.", scope: "session"}]} })`

// truthFiles are a skill, and instructions.
func truthFiles() map[string]string {
	return map[string]string{
		"CLAUDE.md": "Say MANGO when you are done.\n", "note.txt": "a note about PAPAYA\n",
		".claude/skills/probe/SKILL.md": "---\nname: probe\ndescription: Looks.\n---\nThe skill says KUMQUAT.\n",
	}
}

// truth compares what a model got in 50 turns with what is on record of it.
func (t *trial) truth(ctx context.Context) error {
	args, env, err := t.agent.prepare(t, nil)
	_, installed := t.grapnel(ctx, "install", t.agent.name, "--mod")
	if err = cmp.Or(err, installed); err != nil {
		return err
	}
	args = append(args[:len(args)-1], "--input-format", "stream-json") // for the prompt
	args[slices.Index(args, "--allowedTools")+1] += ",Skill,Agent"
	t.model.script = t.truthScript()
	other := slices.Clone(args)
	other[slices.Index(other, "sonnet")] = "haiku"
	for i, run := range []struct {
		args  []string
		turns int
		first string
	}{
		{args, 20, "say hi"},
		{slices.Concat(args, t.agent.goOn), 12, "say hi again"},
		{slices.Concat(other, t.agent.goOn), 9, "say hi to another model"},
		{slices.Concat(args, t.agent.goOn), 9, "/compact"},
	} {
		prompts := []string{run.first}
		for n := range run.turns - 1 {
			prompts = append(prompts, fmt.Sprintf("turn %d of run %d: %s", n+1, i, []string{"shell", "note", "skill", "server", "helper", "talk"}[n%6]))
		}
		if err := t.talk(ctx, run.args, env, prompts); err != nil {
			return err
		}
	}
	if err := endGateway(ctx, t.socket, syscall.SIGTERM); err != nil {
		return err
	}
	return t.compareRecord(ctx)
}

// truthScript makes the call that a prompt is about, once.
func (t *trial) truthScript() script {
	calls := map[string]call{
		"shell": shell("echo shell"), "note": {"Read", map[string]any{"file_path": filepath.Join(t.dir, "note.txt")}}, "skill": {"Skill", map[string]any{"skill": "probe"}},
		"server": {t.agent.server, map[string]any{}}, "helper": {tool: subagentTool},
	}
	made := map[string]bool{}
	return func(c *conversation) []call {
		for _, i := range slices.Backward(c.items) {
			_, word, found := strings.Cut(i.Text, ": ")
			if made[i.Text] || !found || !strings.HasPrefix(i.Text, "turn ") || calls[word].tool == "" {
				continue
			}
			made[i.Text] = true
			return []call{calls[word]}
		}
		return nil
	}
}

// talk runs the agent with one prompt after another on its standard input.
func (t *trial) talk(ctx context.Context, args, env, prompts []string) error {
	cmd := t.agent.start(ctx, t.dir, args, slices.Concat(t.env, env))
	in, err := cmd.StdinPipe()
	out, failed := cmd.StdoutPipe()
	if err = cmp.Or(err, failed, cmd.Start()); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for _, prompt := range prompts {
		err := json.NewEncoder(in).Encode(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": prompt}})
		for kind := ""; err == nil && kind != "result"; {
			var line []byte
			line, err = lines.ReadBytes('\n')
			t.output = append(t.output, line...)
			var event struct{ Type string }
			kind = ""
			if json.Unmarshal(line, &event) == nil {
				kind = event.Type
			}
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%q: %w: %s", prompt, err, said(string(t.output))), cmd.Wait())
		}
	}
	return errors.Join(in.Close(), cmd.Wait(), os.WriteFile(filepath.Join(t.home, "output"), t.output, 0o600))
}

// recordedText is a text on record, and whose it is.
type recordedText struct{ text, owner string }

// compareRecord looks for each byte that the model got in the texts on record.
func (t *trial) compareRecord(ctx context.Context) error {
	s, err := store.Open(ctx, "sqlite:"+t.store(), store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it was read
	known, requests, err := recordedTexts(ctx, s)
	if err != nil {
		return err
	}
	whole, owned := 0, 0
	var missing []string
	owners := map[string]int{}
	for _, body := range t.model.bodies {
		for _, text := range textsOf(body) {
			whole += len(text)
			for at, from := 0, 0; at < len(text); {
				i := slices.IndexFunc(known, func(k recordedText) bool { return k.owner != "unknown" && strings.HasPrefix(text[at:], k.text) })
				if i < 0 {
					at++
					continue
				}
				if from < at {
					missing = append(missing, text[from:at])
				}
				owned, owners[known[i].owner] = owned+len(known[i].text), owners[known[i].owner]+len(known[i].text)
				at += len(known[i].text)
				from = at
			}
		}
	}
	fmt.Printf("%d requests, %d on record; %d of %d bytes (%.2f %%) have an owner: %v\n", len(t.model.bodies), requests, owned, whole, 100*float64(owned)/float64(whole), owners)
	var errs []error
	if float64(owned) < leastOwned*float64(whole) || requests != len(t.model.bodies) {
		errs = append(errs, fmt.Errorf("%d of %d requests, and %d of %d bytes are on record; the first that are not: %.300q", requests, len(t.model.bodies), owned, whole, missing[:min(len(missing), 5)]))
	}
	for text, owner := range map[string]string{
		lease: "house", "Keep the house tidy.": "mod:other", "Say MANGO when you are done.": "claude-code", "KUMQUAT": "claude-code", "say hi again": "user", "a note about PAPAYA": "claude-code",
		secret: "mcp:probe", "mcp__probe__tell {}": "model", subtask: "model",
	} {
		if !slices.ContainsFunc(known, func(k recordedText) bool { return k.owner == owner && strings.Contains(k.text, text) }) {
			i := slices.IndexFunc(known, func(k recordedText) bool { return strings.Contains(k.text, text) })
			errs = append(errs, fmt.Errorf("%q is not on record as a text of %s, but as %+.200v", text, owner, append(known, recordedText{})[max(i, 0)]))
		}
	}
	return errors.Join(errs...)
}

// recordedTexts are those of all requests on record, the longest first, and how many requests there are.
func recordedTexts(ctx context.Context, s *store.Store) (known []recordedText, requests int, err error) {
	list, err := s.List(ctx, store.Filter{Limit: 10_000})
	for _, index := range list {
		m, err := s.Get(ctx, index.ManifestID)
		if err != nil {
			return nil, 0, err
		}
		if m.Observed == "" {
			continue
		}
		requests++
		add := func(hash, owner string) {
			text, failed := s.Text(ctx, hash)
			err = cmp.Or(err, failed)
			known = append(known, recordedText{text, owner})
		}
		for _, part := range m.WithMessages().Sections {
			add(part.Hash, part.Owner)
		}
		for _, tool := range m.HostTools {
			add(tool.Hash, tool.Owner)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", m.ManifestID, err)
		}
	}
	known = slices.DeleteFunc(known, func(k recordedText) bool { return k.text == "" })
	slices.SortFunc(known, func(a, b recordedText) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.owner, b.owner))
	})
	return slices.Compact(known), requests, err
}

// textsOf are the texts of a request: of the system prompt, of messages with the calls in them, and definitions of tools.
func textsOf(body string) (texts []string) {
	type block struct {
		Text, Type, Name, Thinking, Signature string
		Input, Content, Source                json.RawMessage
	}
	var request struct {
		System   json.RawMessage
		Tools    []json.RawMessage
		Messages []struct{ Content json.RawMessage }
	}
	_ = json.Unmarshal([]byte(body), &request) // the fake has decoded it
	lists := []json.RawMessage{request.System}
	for _, m := range request.Messages {
		lists = append(lists, m.Content)
	}
	for _, list := range lists {
		var blocks []block
		var text string
		if json.Unmarshal(list, &text) == nil {
			blocks = []block{{Text: text}}
		}
		_ = json.Unmarshal(list, &blocks) // or it was a text
		for _, b := range blocks {
			content := string(b.Content)
			_ = json.Unmarshal(b.Content, &content) // a list stays as it is
			if b.Type == "tool_use" {
				content = b.Name + " " + string(b.Input)
			}
			texts = append(texts, b.Text+b.Thinking+b.Signature+string(b.Source)+content)
		}
	}
	for _, tool := range request.Tools {
		texts = append(texts, string(tool))
	}
	return texts
}
