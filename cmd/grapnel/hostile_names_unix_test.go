//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// orders is a text that a terminal obeys, in every way that JSON leaves as it is: a
// control sequence in one character, DEL, what reorders, and a break of lines.
const orders = "\u009b31mX\x7f\u202eY\u2066\u0085Z"

// hostileConfig has it wherever a configuration can, but for names.
const hostileConfig = `version: 1
manifest: {keep_text: true}
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths]}
  - name: memory
    builtin: memory
    config: {dsn: %q}
    grants: {contribute: [policy, prompt_context, prompt_section, tool_bundle, background_job, decision, reminder], sections: [memory_recall], domains: [memory], see: ['*'], tools: ['*']}
  - name: house
    builtin: scripted
    grants: {contribute: [prompt_section, audit, decision], sections: [house_rules]}
    config:
      hooks:
        - id: rules
          phase: turn.pre_prompt_compile
          respond:
            - {kind: prompt_section, section_id: house_rules, title: %[2]q, content: %[2]q}
            - {kind: audit, event_kind: looked, details: {%[2]q: %[2]q}, safe_for_user: true}
        - id: guard
          phase: tool.pre_call
          respond: [{kind: decision, verdict: deny, reason: %[2]q}]
`

// TestHostileNamesInJSON: no command prints a character that a terminal obeys in its JSON
// or in an error, whatever lies in a tree, a configuration or a database.
func TestHostileNamesInJSON(t *testing.T) {
	skipShort(t)
	t.Parallel()

	dir := t.TempDir()
	tree := filepath.Join(dir, "t"+strings.ReplaceAll(orders, "/", ""))
	plant(t, tree, map[string]string{".git/HEAD": "", "AGENTS.md": "Root " + orders, "agents.md": orders, orders + "/AGENTS.md": orders, "a/AGENTS.md": "-> ../" + orders + "/none"})
	cfg, store, db := filepath.Join(dir, "c.yaml"), "sqlite:"+filepath.Join(dir, "log.db"), "sqlite:"+filepath.Join(dir, "m.db")
	memory := must(json.Marshal(map[string]string{"id": "01J0000000000000000000000A", "workspace_id": "local", "scope": "workspace", "category": "decision", "text": "We " + orders, "source": "user"}))(t)
	plant(t, dir, map[string]string{
		"c.yaml": fmt.Sprintf(hostileConfig, db, orders), "bad.yaml": "version: 1\n" + strings.ReplaceAll(orders, "\u0085", "") + ": 1\n", "m.jsonl": string(memory) + "\n",
	})
	state, calls := filepath.Join(dir, "state.json"), filepath.Join(dir, "calls.jsonl")
	turn := []string{"--config", cfg, "--store", store, "--dir", tree, "--thread", "t" + orders, "--turn"}
	told := 0
	for _, args := range [][]string{
		append([]string{"compile", "--record", calls}, append(turn, "1")...),
		append([]string{"compile"}, append(turn, "2"+orders)...),
		{"dispatch", "tool.pre_call", "--config", cfg, "--dir", tree},
		{"plan", "--config", cfg},
		{"plan", "turn.pre_prompt_compile" + orders, "--config", cfg},
		{"explain", "house.rules", "--config", cfg, "--dir", tree},
		{"explain", "house_rules", "--config", cfg, "--dir", tree},
		{"config", "check", "--config", cfg},
		{"config", "check", "--config", filepath.Join(dir, "bad.yaml")},
		{"plugin", "list", "--config", cfg},
		{"plugin", "describe", "house", "--config", cfg},
		{"plugin", "describe", orders, "--config", cfg},
		{"plugin", "replay", calls, "--config", cfg},
		{"manifest", "list", "--store", store},
		{"manifest", "show", "latest", "--store", store},
		{"manifest", "show", "latest", "--text", "--store", store},
		{"manifest", "show", orders, "--store", store},
		{"manifest", "audits", "--store", store},
		{"manifest", "blame", "--thread", "t" + orders, "--store", store},
		{"manifest", "verify", "--store", store},
		{"manifest", "export", "--store", store},
		{"agents", "chain", "--dir", tree, "--state", state},
		{"agents", "chain", "--dir", filepath.Join(tree, "a")},
		{"agents", "touch", "--state", state, filepath.Join(tree, orders, "x"), filepath.Join(tree, "a", "x")},
		{"agents", "resume", "--state", state, "--dir", filepath.Join(tree, orders)},
		{"agents", "explain", filepath.Join(tree, orders, "AGENTS.md"), "--dir", tree},
		{"agents", "lint", "--dir", tree},
		{"memory", "import", filepath.Join(dir, "m.jsonl"), "--memory", db},
		{"memory", "list", "--memory", db},
		{"memory", "search", "We", "--memory", db},
		{"memory", "export", "--memory", db},
		{"memory", "stats", "--memory", db},
		{"memory", "show", orders, "--memory", db},
		{"jobs", "list", "--store", store},
		{"jobs", "show", orders, "--store", store},
		{"status", orders},
		{orders},
		{"--" + orders},
	} {
		name := strings.ToValidUTF8(strings.Join(args[:min(2, len(args))], " "), "")
		code, out, errs := grapnelIn(t, dir, append(args, "--json")...)
		if code == exitOK && out == "" || code != exitOK && errs == "" && out == "" {
			t.Errorf("%q says nothing (%d)", name, code)
		}
		for stream, text := range map[string]string{"its result": out, "its error": errs} {
			if i := strings.IndexFunc(text, obeyed); i >= 0 && name != "manifest export" { // its bytes are hashed: TestExportToATerminal
				t.Errorf("%q: in %s a terminal would obey %q", name, stream, text[max(0, i-20):min(len(text), i+20)])
			}
		}
		dec := json.NewDecoder(strings.NewReader(out))
		for dec.More() {
			var value any
			if err := dec.Decode(&value); err != nil {
				t.Errorf("%q: %v in %.300s", name, err, out)
				break
			}
			if strings.ContainsRune(fmt.Sprint(value), '\u009b') {
				told++
				break
			}
		}
	}
	if told < 16 {
		t.Errorf("only %d results hold the text that they should hold", told)
	}
	if data, err := os.ReadFile(calls); err != nil || len(data) == 0 {
		t.Errorf("the record: %v", err)
	}
}

// TestExportToATerminal: what is exported are the bytes that hashes are over, except on a
// terminal, which gets the same value.
func TestExportToATerminal(t *testing.T) {
	t.Parallel()

	const line = "{\"a\":\"" + orders + "\"}"
	for terminal, want := range map[bool]string{false: line + "\n", true: `{"a":"\u009b31mX\u007f\u202eY\u2066\u0085Z"}` + "\n"} {
		got := []byte(line + "\n")
		if clean := (&app{terminal: terminal}).cleaned("jsonl"); clean != nil {
			got = clean(got)
		}
		if string(got) != want {
			t.Errorf("terminal %v: %q, want %q", terminal, got, want)
		}
	}
}
