package main

// The plugins of the checks; PROGRAM is this program.
const (
	house = `  - name: house
    builtin: scripted
    grants: {contribute: [decision]}
    config:
      hooks:
        - id: guard
          phase: tool.pre_call
          role: validate
          when: 'tool.name == "Bash"'
          respond: [{kind: decision, verdict: deny, reason: "no shell in this house", reason_code: no_shell}]
`
	// others stand beside a guard, as people have them.
	others = `  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state]}
    env: {pass: [HOME, XDG_CONFIG_HOME]}
  - name: memory
    builtin: memory
    grants:
      contribute: [policy, prompt_context, audit, tool_bundle, prompt_section]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: [memory_search, memory_list, memory_get, memory_remember, memory_forget]
      see: [user_text, assistant_text, status, tool_events, recall_plan, tool_calling, available_tools, policy, context, metadata]
    env: {pass: [HOME, XDG_DATA_HOME]}
`
	guarded = `  - name: probe
    command: PROGRAM
    unsafe_path: true
    grants: {contribute: [prompt_section, decision, rewrite, tool_bundle], sections: [sky], tools: [tell], see: [arguments, result, forced]}
` + others
)

const noShell = "no shell in this house"

// read is a call that would tell the model the secret and leave a file.
var read = shell("touch " + asked + "; cat .env") //nolint:gochecknoglobals // immutable

// shellSkill is a skill with a line that Claude Code has the shell run before the model sees it.
const shellSkill = "---\nname: probe\ndescription: Looks.\nallowed-tools: Bash(touch:*), Bash(cat:*)\n---\nLook: !`touch " + asked + "` !`cat .env`\n"

// checks is what is promised of agents. To add one, add a row; its fields are those of check.
func checks() []check {
	one := [][]call{{read}}
	return []check{
		{name: "cold start, a guard alone: the first event is the call", guard: house, answers: one, told: []string{noShell}, record: []string{"Bash deny"}},
		{name: "cold start, three plugins: the first event is the session", guard: house + others, answers: one, told: []string{noShell}, record: []string{"Bash deny"}},
		{name: "cold start, three plugins: no gateway at the call", guard: house + others, answers: one, kill: []int{0}, told: []string{noShell}, record: []string{"Bash deny"}},
		{
			name: "kill -9 between two calls", does: "guard", answers: [][]call{{shell("touch first")}, {read}}, kill: []int{1},
			ran: []string{"first"}, told: []string{because}, record: []string{"Bash allow", "Bash deny"},
		},
		{
			name: "on record, cold start and kill -9 behind the answer", guard: house + others, answers: one, kill: []int{0, 1},
			told: []string{noShell}, record: []string{"Bash deny"},
		},
		{
			name: "shell line of a skill", agent: "claude-code", guard: house, prompt: "/probe",
			files: map[string]string{".claude/skills/probe/SKILL.md": shellSkill}, record: []string{"Bash deny"},
		},
		{
			name: "shell line of a command", agent: "claude-code", guard: house, prompt: "/probe",
			files: map[string]string{".claude/commands/probe.md": shellSkill}, record: []string{"Bash deny"},
		},
		{
			name: "typed skill", agent: "claude-code", does: "guard", prompt: "/probe",
			files: map[string]string{".claude/skills/probe/SKILL.md": "---\nname: probe\ndescription: Looks.\n---\n" + secret + "\n"}, record: []string{"Skill deny"},
		},
		{
			name: "typed command", agent: "claude-code", does: "guard", prompt: "/probe",
			files: map[string]string{".claude/commands/probe.md": secret + "\n"}, record: []string{"Skill deny"},
		},
		{name: "two calls at once", does: "guard", answers: [][]call{{read, shell("touch second; cat .env")}}, told: []string{because}, record: []string{"Bash deny", "Bash deny"}},
		{
			name: "call of a subagent", does: "guard", answers: [][]call{{{tool: subagentTool}}}, subanswers: one,
			told: []string{because}, record: []string{"Bash deny"},
		},
		{name: "tool of an MCP server", does: "guard", server: true, answers: [][]call{{{tool: mcpTool}}}, told: []string{because}, record: []string{mcpTool + " deny"}},
		{name: "rewrite of a call", does: "rewrite", answers: [][]call{{shell("touch " + asked)}}, ran: []string{rewritten}, record: []string{"Bash pre_call rewritten"}},
		{name: "redaction of a result", does: "redact", answers: one, ran: []string{asked}, told: []string{redacted}, record: []string{"Bash post_call rewritten"}},
		{name: "uninstalled", does: "guard", uninstalled: true, answers: one, ran: []string{asked}, secret: true},
	}
}
