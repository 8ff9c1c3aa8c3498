// Package codex describes Codex CLI.
//
// Its contract, for 0.171.0: the JSON schemas in the released program (app-server generate-json-schema), codex-rs/hooks and
// codex-rs/core/config.schema.json of github.com/openai/codex, developers.openai.com/codex/hooks, and runs of the program (make
// hosts). An answer with a field that a schema lacks, with the decision ask, with an allow without updatedInput or the other
// way round is a failed hook there, and the tool runs as it was called.
package codex

import (
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/phases"
)

const name = "codex"

// Agent describes the agent.
func Agent() *agent.Agent {
	a := &agent.Agent{
		Name: name, Events: events(), Decode: agent.Decoder(decode), Encode: encode, ReadRequest: readRequest, Scripts: scripts(),
		Install: agent.Install{
			Files:   map[agent.Scope]string{agent.User: ".codex/hooks.json", agent.Project: ".codex/hooks.json"},
			Servers: map[agent.Scope]string{agent.User: ".codex/config.toml", agent.Project: ".codex/config.toml"},
			Server: func(s *agent.Server, _ func(string) string) { // which gets HOME, PATH and a few variables besides
				s.Pass = append(agent.Variables(), agent.TokenVariable)
			},
			Home: "CODEX_HOME", ConfigFile: "config.toml", Skips: skips, Shell: []string{"$SHELL", "-lc"}, Entry: agent.ShellEntry, Nested: true,
			Notes: []string{
				"open /hooks in Codex and trust each of these definitions: until then, and after each change of them, Codex skips them without a word",
				"run: codex features disable unified_exec_tty. Otherwise the model can write more commands to one that reads its terminal, which no hook sees",
			},
		},
		Above: []agent.AbovePlace{{
			Kind: "plugin", Off: map[string]string{"allow_managed_hooks_only": "keep Grapnel's hooks from running"},
			Files: []string{"/etc/codex/requirements.toml", "/etc/codex/config.toml", "/etc/codex/managed_config.toml", "/etc/codex/hooks.json", "~/.codex/plugins/cache/*/*/*/hooks/hooks.json"},
			Powers: map[string][]string{
				"change arguments that Grapnel judged": {"PreToolUse"},
				"change results that Grapnel judged":   {"PostToolUse"},
				"allow what Codex would ask":           {"PermissionRequest"},
			},
		}},
		Contract: &agent.Contract{
			Package: "@openai/codex", VersionPerSystem: true, Files: "vendor/*/bin/codex*",
			Run: []string{"app-server", "generate-json-schema", "--out", "."}, Out: "v2/HooksListResponse.json",
			What: "HookEventName of codex app-server generate-json-schema", From: []string{`"HookEventName"`, `"enum"`}, To: "]", Name: `"(\w+)"`, Upper: true,
		},
	}
	a.Transcripts = transcripts(a)
	return a
}

func events() map[string]agent.Meaning {
	room := agent.Room{Most: 10_000} // additionalContextLimit: 2,500 tokens, for which Codex counts 4 bytes each
	runs, silent := agent.Script{Runs: true}, agent.Script{Runs: true, NoMatcher: true, Silent: true}
	noMatcher, noModelCall := agent.Script{Runs: true, NoMatcher: true}, agent.Script{Why: agent.NoModelCall}
	return map[string]agent.Meaning{
		"SessionStart":      {Step: agent.StepSessionStart, Script: runs},
		"UserPromptSubmit":  {Step: agent.StepPrompt, Room: room, Script: noMatcher},
		"PreToolUse":        {Step: agent.StepToolCall, Room: room, Script: runs},
		"PermissionRequest": {Step: agent.StepPermission, Script: agent.Script{Why: agent.NoPermission, Decides: true}},
		"PostToolUse":       {Step: agent.StepToolResult, Room: room, Script: runs},
		"PostModelRequest":  {Step: agent.StepUsage, Script: noModelCall},
		"Stop":              {Step: agent.StepStop, Script: noMatcher},
		"Interrupt":         {Step: agent.StepInterrupted, Script: silent},
		"PreCompact":        {Step: agent.StepCompact, Script: runs},
		"PostCompact":       {Step: agent.StepCompacted, Script: agent.Script{Runs: true, Silent: true}},
		"SessionEnd":        {Step: agent.StepSessionEnd, Script: silent},
		"SubagentStart":     {Step: agent.StepSubagent, Room: room, Script: agent.Script{Why: agent.NoSubagent}},
		"SubagentStop":      {Step: agent.StepStop, Script: agent.Script{Why: agent.NoSubagent, Decides: true}},

		"PreModelRequest": {Why: agent.NoRequests, Script: noModelCall},
	}
}

type payload struct {
	agent.Payload

	TurnID  string `json:"turn_id"`
	Rollout string `json:"transcript_path"`
	Usage   *struct {
		Input      int `json:"input_tokens"`
		Cached     int `json:"cached_input_tokens"`
		CacheWrite int `json:"cache_write_input_tokens"`
		Output     int `json:"output_tokens"`
	} `json:"token_usage"`
}

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	e := p.Event(a)
	e.TurnID = p.TurnID
	if e.Step == agent.StepUsage {
		e.Kept = p.Rollout
	}
	if u := p.Usage; u != nil && e.Step == agent.StepUsage {
		e.Usage = phases.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.Cached, CacheWriteTokens: u.CacheWrite}
	}
	return e, nil
}

func encode(e *agent.Event, o *agent.Outcome) any {
	said := agent.ClaudeSpecific{Event: e.Name, Context: o.Context}
	switch e.Step {
	case agent.StepPrompt, agent.StepStop:
		if o.Verdict != "" {
			return agent.Block(o.Reason)
		}
		if e.Step == agent.StepStop {
			return nil // its schema has no text for the model
		}
	case agent.StepToolCall:
		switch {
		case o.Verdict != "":
			return agent.ClaudeSpecific{Event: e.Name, Permission: "deny", Why: o.DenyAsk().Reason}.Answer()
		case o.Arguments != nil:
			said.Permission, said.Input = "allow", o.Arguments
		}
	case agent.StepPermission:
		return agent.DenyPermission(e, o)
	case agent.StepToolResult:
		if o.Result != nil {
			return agent.Block(*o.Result) // which replaces the result
		}
	case agent.StepSubagent:
	default:
		return nil
	}
	return said.Answer()
}

// skips reads what /hooks of Codex has written. Whether a trusted definition was changed since, only Codex knows.
func skips(at string, config map[string]any) string {
	member := func(names ...string) any {
		var v any = config
		for _, name := range names {
			table, _ := v.(map[string]any)
			v = table[name]
		}
		return v
	}
	isOff := func(names ...string) bool {
		on, set := member(names...).(bool)
		return set && !on
	}
	switch trusted, _ := member("hooks", "state", at, "trusted_hash").(string); {
	case isOff("features", "hooks"):
		return "the feature hooks is off in config.toml: codex features enable hooks"
	case isOff("hooks", "state", at, "enabled"):
		return "it is switched off in /hooks of Codex"
	case trusted == "":
		return "it is not trusted yet: open /hooks in Codex"
	}
	return ""
}
