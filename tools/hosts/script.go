package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// call is one that the model makes: of a tool of the agent's by its own name, or of one of these.
type call struct {
	tool string
	args any // for shellTool a string, the command
}

// Tools that each agent has under another name.
const (
	shellTool    = "SHELL"
	serverTool   = "SERVER"   // of the MCP server "probe"
	pluginTool   = "PLUGIN"   // of the plugin, by way of the gateway's MCP server
	subagentTool = "subagent" // it is given subtask
)

// subtask is the prompt of a subagent.
const subtask = "You are the helper. Do what you were made for."

// conversation is what a request to the model has.
type conversation struct {
	items []item
	round int      // answers with calls that it has already
	tools []string // that the agent offers
}

// script says what the model calls; nothing ends the conversation.
type script func(*conversation) []call

// rounds is the script that makes the calls of one answer after another.
func rounds(answers ...[]call) script {
	return func(c *conversation) []call {
		if c.round < len(answers) {
			return answers[c.round]
		}
		return nil
	}
}

func shell(command string) call { return call{tool: shellTool, args: command} }

// isSubagent reports whether the conversation is that of a subagent: its first message of a user is the subtask.
func (c *conversation) isSubagent() bool {
	return !slices.ContainsFunc(c.items, func(i item) bool { return strings.Contains(i.Text, userPrompt) }) &&
		slices.ContainsFunc(c.items, func(i item) bool { return strings.Contains(i.Text, subtask) })
}

// callID is the id of a call, from which roundOf reads how often the model has answered.
func callID(round, n int) string { return fmt.Sprintf("call_%d_%d", round, n) }

var idOfCall = regexp.MustCompile(`^call_(\d+)_\d+$`)

func roundOf(id any) int {
	text, _ := id.(string)
	if m := idOfCall.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		return n + 1
	}
	return 0
}

// claudeCall is a call as Anthropic's API has it, for Claude Code and opencode.
func claudeCall(c call, tools []string) (name string, input any) {
	switch c.tool {
	case shellTool:
		name = "Bash"
		if slices.Contains(tools, "bash") { // opencode's
			name = "bash"
		}
		return name, map[string]any{"command": c.args, "description": "Leave a marker"}
	case subagentTool:
		if slices.Contains(tools, "task") { // opencode's
			return "task", map[string]any{ // Copilot's has the last two
				"description": "Leave a marker", "prompt": subtask, "subagent_type": "general", "agent_type": "general-purpose", "name": "helper",
			}
		}
		return "Agent", map[string]any{"description": "Leave a marker", "prompt": subtask, "subagent_type": "general-purpose", "run_in_background": false}
	}
	return c.tool, c.args
}

// codexCall is a call as OpenAI's API has it, without its id.
func codexCall(c call, tools []string) map[string]any {
	name, namespace, args := c.tool, "", c.args
	switch {
	case c.tool == subagentTool:
		namespace, name, args = "multi_agent_v1", "spawn_agent", map[string]any{"message": subtask}
	case c.tool == waitTool:
		namespace, name = "multi_agent_v1", "wait_agent"
	case c.tool == shellTool && slices.Contains(tools, "exec_command"):
		name, args = "exec_command", map[string]any{"cmd": c.args}
	case c.tool == shellTool && slices.Contains(tools, "shell_command"):
		name, args = "shell_command", map[string]any{"command": c.args}
	case c.tool == shellTool:
		args = map[string]any{"command": []any{"bash", "-c", c.args}}
	default: // tools of a server are a namespace
		if i := strings.LastIndex(c.tool, "__"); i >= 0 {
			namespace, name = c.tool[:i], c.tool[i+2:]
		}
	}
	if args == nil {
		args = map[string]any{}
	}
	data, err := json.Marshal(args)
	if err != nil {
		panic(err) // they are made here
	}
	call := map[string]any{"type": "function_call", "name": name, "arguments": string(data)}
	if namespace != "" {
		call["namespace"] = namespace
	}
	return call
}

// waitTool waits for a subagent: Codex's model has to.
const waitTool = "wait"

var idOfAgent = regexp.MustCompile(`"agent_id":\s*"([^"]+)"`)

// waitFor is the call that waits for the subagent that a result names.
func waitFor(items []item) []call {
	for _, i := range items {
		if m := idOfAgent.FindStringSubmatch(i.Text); i.Result && m != nil {
			return []call{{tool: waitTool, args: map[string]any{"targets": []string{m[1]}}}}
		}
	}
	return nil
}
