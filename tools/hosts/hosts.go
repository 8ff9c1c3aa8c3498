package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hook is one definition of a hook, in a host's configuration: this program gives a canned answer, or fails.
type hook struct {
	event     string
	onFailure string // Claude Code's
	untrusted bool   // Codex: the hook is not trusted
	canned
}

// canned is what the hook does.
type canned struct {
	Answer string `json:"answer"`
	Exit   int    `json:"exit"`
	Crash  bool   `json:"crash"`
}

// hookSeconds is how long a host waits for a hook.
const hookSeconds = 8

// agent is one vendor's program.
type agent struct {
	name, pkg, version string
	sources            map[string]source // by platform
	command            []string          // how it is started, once it was got
	shell, server      string            // its names of the shell and of the tool of the MCP server "probe"
	noStart            bool              // its hooks start no gateway
	goOn               []string          // arguments in front of the prompt that go on with the last session
	asks               []string          // the option that the prompt is of
	// prepare writes the configuration of a trial into its home, and returns arguments and environment of a run. The command is
	// the one of the check's hook; nil without one.
	prepare func(t *trial, command []string) (args, env []string, err error)
}

// agents are pinned to the versions that docs/BRIDGES.md is about.
func agents() []agent {
	return []agent{
		{name: "claude-code", pkg: "@anthropic-ai/claude-code", version: "2.1.332", shell: "Bash", server: mcpTool, goOn: []string{"--continue"}, prepare: prepareClaude, sources: map[string]source{
			"linux/amd64": {"@anthropic-ai/claude-code-linux-x64@%s", "sha512-f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0GrUckYxaeebC4h0DqiKzLcw==", "claude"},
			"linux/arm64": {"@anthropic-ai/claude-code-linux-arm64@%s", "sha512-BlHNEtK38KBPWU31F4lUSS9sHclCyfWbThT1CErvxxH8+XcljYLZlQwdyXBkTD62rw1TgfE1u1a+quMWS0NSJg==", "claude"},
		}},
		{name: "codex", pkg: "@openai/codex", version: "0.171.0", shell: "Bash", server: mcpTool, goOn: []string{"resume", "--last"}, prepare: prepareCodex, sources: map[string]source{
			"linux/amd64": {"@openai/codex@%s-linux-x64", "sha512-l66NZkQgdk2C3pbcfULDz42yEUB581MVA6I+Y43Wp4OIqEy73HCdmZ0GTjeAHY2ycuH4N00d9VsLrwT1jxshTw==", "vendor/x86_64-unknown-linux-musl/bin/codex"},
			"linux/arm64": {"@openai/codex@%s-linux-arm64", "sha512-9z17t4bbUJ9UCIb49O4PoA+ki+45q3rd8nZ8PeH6sYnlKkBld/Xpo/OS3h3Ti954+foshX4o7k5TCU8N7zzqQA==", "vendor/aarch64-unknown-linux-musl/bin/codex"},
		}},
		{name: "gemini", pkg: "@google/gemini-cli", version: "0.61.0", shell: "run_shell_command", server: "mcp_probe_tell", goOn: []string{"--resume", "latest"}, asks: []string{"-p"}, prepare: prepareGemini, sources: map[string]source{
			anyPlatform: {"@google/gemini-cli@%s", "sha512-dbQ9A0qBtFJNi6XBkHvfZ6Azpn6PNgH/P8h2MZ67RLlX8hSAVjup39CRWqdRxZv7YXIuhrFaytr8y0jKnkoxnQ==", "bundle/gemini.js"},
		}},
		{name: "opencode", pkg: "opencode-ai", version: "1.18.33", shell: "bash", server: "probe_tell", noStart: true, goOn: []string{"--continue"}, prepare: prepareOpencode, sources: map[string]source{
			"linux/amd64": {"opencode-linux-x64-baseline@%s", "sha512-1KQGBiiDDeL/VHHbHkOvvFo8Jr97WT5+C1tear+p7IcDTnXgVHXqIjU4O4jM4mHQzykTP2i884FCnW5LDa+zCA==", "bin/opencode"},
		}},
	}
}

const userPrompt = "Leave the marker."

// prompt is what the person says.
func (t *trial) prompt() string { return cmp.Or(t.check.prompt, userPrompt) }

// probe is how an agent starts the MCP server "probe".
func (t *trial) probe() map[string]any {
	return map[string]any{"probe": map[string]any{"command": t.lab.self, "args": []string{mcpMode}}}
}

func prepareClaude(t *trial, command []string) (args, env []string, err error) {
	if command != nil {
		def := map[string]any{"type": "command", "command": command[0], "args": command[1:], "timeout": hookSeconds}
		if t.check.hook.onFailure != "" {
			def["onFailure"] = t.check.hook.onFailure
		}
		err = t.writeHook(".claude/settings.json", def)
	}
	args = []string{"-p", "--output-format", "stream-json", "--verbose"}
	if t.check.server {
		servers := filepath.Join(t.home, "mcp.json")
		err = errors.Join(err, writeJSON(servers, map[string]any{"mcpServers": t.probe()}))
		args = append(args, "--mcp-config", servers)
	}
	return append(args, "--allowedTools", "Bash,Read,Grep,Glob,Write,"+mcpTool+","+ourTool, "--model", "sonnet", t.prompt()), []string{
		"ANTHROPIC_BASE_URL=" + t.model.server.URL, "ANTHROPIC_API_KEY=fake", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_COST_WARNINGS=1",
	}, err
}

// writeHook writes a file of the agent's with the hook of the check.
func (t *trial) writeHook(file string, def map[string]any) error {
	return writeJSON(filepath.Join(t.home, file), map[string]any{"hooks": map[string]any{t.check.hook.event: []any{map[string]any{"hooks": []any{def}}}}})
}

func prepareCodex(t *trial, command []string) (args, env []string, err error) {
	config := fmt.Sprintf(`model = "fake"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
`, t.model.server.URL)
	if t.check.server {
		config += fmt.Sprintf("[mcp_servers.probe]\ncommand = %q\nargs = [%q]\n", t.lab.self, mcpMode)
	}
	if command != nil { // no path of ours has a blank
		err = t.writeHook(".codex/hooks.json", map[string]any{"type": "command", "command": strings.Join(command, " "), "timeout": hookSeconds})
	}
	args = []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--cd", t.dir}
	if !t.check.hook.untrusted {
		args = append(args, "--dangerously-bypass-hook-trust")
	}
	return append(args, t.prompt()), []string{"FAKE_KEY=fake"}, errors.Join(err, writeFile(filepath.Join(t.home, ".codex", "config.toml"), []byte(config)))
}

func prepareGemini(t *trial, _ []string) (args, env []string, err error) {
	settings := map[string]any{
		"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}}, "privacy": map[string]any{"usageStatisticsEnabled": false},
		"general": map[string]any{"enableAutoUpdate": false},
	}
	if t.check.server {
		settings["mcpServers"] = t.probe()
	}
	err = writeJSON(filepath.Join(t.home, ".gemini", "settings.json"), settings)
	args = []string{"-p", t.prompt(), "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro"} // that model needs no other to choose it
	return args, []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=" + t.model.server.URL}, err
}

// prepareOpencode gives it a provider with Anthropic's API.
func prepareOpencode(t *trial, _ []string) (args, env []string, err error) {
	config := map[string]any{"autoupdate": false, "share": "disabled", "provider": map[string]any{"fake": map[string]any{
		"npm": "@ai-sdk/anthropic", "options": map[string]any{"baseURL": t.model.server.URL + "/v1", "apiKey": "fake"},
		"models": map[string]any{"m": map[string]any{"tool_call": true, "limit": map[string]any{"context": 100_000, "output": 4096}}},
	}}}
	if t.check.server {
		config["mcp"] = map[string]any{"probe": map[string]any{"type": "local", "command": []string{t.lab.self, mcpMode}}}
	}
	file := filepath.Join(t.home, "opencode.json")
	return []string{"run", t.prompt(), "-m", "fake/m"}, []string{"OPENCODE_CONFIG=" + file, "XDG_DATA_HOME=" + filepath.Join(t.home, "data")}, writeJSON(file, config)
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	return errors.Join(err, writeFile(path, data))
}

// writeFile writes a file, and makes the directories above it.
func writeFile(path string, data []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
}
