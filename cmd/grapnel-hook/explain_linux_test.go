package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestExplained: what show, explain and find say of two turns with a compaction between them is what the model was given.
func TestExplained(t *testing.T) {
	t.Parallel()

	d := newDelivery(t, "agentsdoc", firstParty[0].config+`
  - name: house
    builtin: scripted
    grants: {contribute: [prompt_section, reminder, decision, prompt_context], sections: [house_rules]}
    config:
      hooks:
        - {id: bad, phase: turn.pre_prompt_compile, respond: [{kind: prompt_section, section_id: other_rules, content: "No."}]}
        - {id: blank, phase: turn.pre_prompt_compile, respond: [{kind: prompt_section, section_id: house_rules, content: " "}]}
        - {id: begin, phase: session.start, respond: [{kind: prompt_context, content: "Begun."}]}
        - {id: after, phase: turn.post_compaction, respond: [{kind: reminder, type: house.after, text: "Look at the list again."}]}
        - {id: guard, phase: tool.pre_call, role: validate, when: 'tool.name == "Bash"', respond: [{kind: decision, verdict: deny, reason_code: no_shell}]}
        - {id: note, phase: tool.post_call, respond: [{kind: reminder, type: house.note, text: "Mind the gap."}]}
manifest: {keep_text: true}`)
	d.write(t, "outer/AGENTS.md", "Of above.\n", 0o600)
	d.write(t, "outer/work/.git/HEAD", "ref: refs/heads/main\n", 0o600)
	d.write(t, "outer/work/AGENTS.md", "Heron of the tree.\n", 0o600)
	work := d.dir + "/outer/work"
	send := func(turn int, event, more string) string {
		payload := fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s","cwd":%q,"prompt":"hi","prompt_id":"%d"%s}`, event, work, turn, more)
		code, out, errs := d.hook(t, strings.NewReader(payload), "claude-code", event)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", event, code, errs)
		}
		return out
	}
	says := func(want string, args ...string) {
		t.Helper()
		if out, errs := d.grapnel(t, work, "", args...); !strings.Contains(out+errs, want) {
			t.Errorf("%q does not say %q:\n%s%s", args, want, out, errs)
		}
	}
	call := func(tool string) string {
		return `,"tool_name":"` + tool + `","tool_use_id":"c","tool_input":{"file_path":"/x"},"tool_response":"x"`
	}

	send(1, "SessionStart", `,"source":"startup"`)
	send(1, "UserPromptSubmit", "")
	const read = "it is above the tree: the agent reads a file of this name there by itself"
	says("/outer/AGENTS.md: "+read, "manifest", "show", "latest", "--json")
	says("section agents_md is not in the prompt: agentsdoc.prompt, which may write it, gave nothing: ", "explain", "agents_md")
	says("(grapnel agents chain shows where it looks)\n", "explain", "agents_md") // and no hook that brings reminders alone
	send(1, "PreToolUse", call("Bash"))
	send(1, "Stop", "")
	says("subscription house.guard contributed: it ran and denied", "explain", "house.guard")
	says("hook runs (1)", "explain", "agents_md")
	says("house.guard (deny no_shell)", "explain", "Bash")
	says("which did not say what it offers by itself", "explain", "Bash")
	says("2 things of it were omitted", "explain", "house") // each once, though more records of events follow
	says("of its plugin was omitted: house_rules, since it has no text (blank)\n", "explain", "house.blank")
	says("subscription house.begin contributed: it ran before this turn, and 1 of its contributions was kept\n", "explain", "house.begin")
	send(1, "PreCompact", `,"trigger":"manual"`)
	send(1, "PostCompact", `,"trigger":"manual"`)
	if d.write(t, "outer/CLAUDE.md", "Of above.\n", 0o600); !strings.Contains(send(2, "UserPromptSubmit", ""), "Heron of the tree.") {
		t.Error("Claude Code reads no AGENTS.md below a CLAUDE.md, and it is not sent")
	}
	says("/outer/CLAUDE.md: "+read, "manifest", "show", "latest", "--json")
	send(2, "PreToolUse", call("Read"))
	send(2, "PostToolUse", call("Read"))
	send(2, "Stop", "")
	const handed = "its reminder house.after (23 characters) was handed over with the prompt"
	says("subscription house.after contributed: it ran before this turn; "+handed, "explain", "house.after")
	says(handed+"; its reminder house.note (13 characters) was handed over with the answer to tool.post_call", "explain", "house")
	says("  house.after  house."+"after", "manifest", "show", "latest")
	says("is in a reminder: it was said by the plugin house (house.after) in a reminder", "explain", "--sentence", "Look at the list")
	says("in the prompt: it was said by the plugin agentsdoc (agentsdoc.prompt) in agents_md", "explain", "--sentence", "Heron of the tree.")
	says("reminder  house  ", "manifest", "find", "the gap")
	found, _ := d.grapnel(t, work, "", "manifest", "find", "the gap", "--json")
	_, events, _ := strings.Cut(found, `"manifest_id": "`)
	events, _, _ = strings.Cut(events, `"`)
	says("before the record of events "+events, "explain", "house", "--manifest", events)
	says(`"asked": "`+events, "explain", "house", "--manifest", events, "--json")
}
