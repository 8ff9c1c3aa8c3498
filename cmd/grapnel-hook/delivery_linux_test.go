package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "write the table of docs/BRIDGES.md again")

// said is what each plugin has to say; NAME is the agent's.
const said = "Heron of NAME"

// firstParty are the plugins, with a configuration that gives them something to say.
var firstParty = []struct{ name, config string }{
	{"agentsdoc", `grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state], read: ['*']}
    env: {pass: [HOME, XDG_CONFIG_HOME]}`},
	{"commandhooks", `grants: {contribute: [decision, prompt_context, reminder, rewrite], see: [arguments, model, outcome, result, source, text, touched_paths, user_text]}
    config: {format: claude, files: [HOME/hooks.json]}`},
	{"fileguard", `grants: {contribute: [decision, rewrite], see: [user_text, arguments, result]}`},
	{"mcp", `grants: {contribute: [tool_bundle], tools: ['*'], host: [state]}
    config: {servers: {birds: {command: [HOME/server]}}}`},
	{"memory", `grants:
      contribute: [policy, prompt_context, audit, tool_bundle, prompt_section]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: [memory_search, memory_list, memory_get, memory_remember, memory_forget]
      see: [user_text, assistant_text, status, tool_events, recall_plan, tool_calling, available_tools, policy, context, metadata]
    env: {pass: [HOME, XDG_DATA_HOME]}`},
	{"skills", `grants: {contribute: [prompt_section, tool_bundle], sections: [skills_runtime], tools: [read_skill], see: [tool_calling, available_tools, touched_paths], read: ['*']}`},
}

// birds is an MCP server with one tool.
const birds = `#!/bin/sh
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"birds","version":"1"}}}' ;;
  *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"heron","description":"Tells.","inputSchema":{"type":"object"}}]}}' ;;
  *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}' ;;
  esac
done
`

// TestDelivery sends a conversation of each agent through the program, as grapnel install has set it up, for each plugin of
// ours, and keeps the table of what came back in docs/BRIDGES.md.
func TestDelivery(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a gateway and eight agents for each plugin")
	}
	t.Parallel()

	bin := newHome(t, "grapnel")
	rows := make([]string, len(firstParty))
	t.Run("plugins", func(t *testing.T) {
		for i, p := range firstParty {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()

				d := newDelivery(t, bin, p.name, p.config)
				cells := []string{"`" + p.name + "`"}
				for _, host := range agents.Names() {
					cells = append(cells, d.converse(t, host))
				}
				rows[i] = "| " + strings.Join(cells, " | ") + " |\n"
			})
		}
	})
	if t.Failed() || slices.Contains(rows, "") {
		return // -run has left out a plugin
	}
	table := "| plugin | `" + strings.Join(agents.Names(), "` | `") + "` |\n" + strings.Repeat("|---", len(agents.Names())+1) + "|\n" + strings.Join(rows, "")
	checkTable(t, table)
}

func checkTable(t *testing.T, table string) {
	t.Helper()
	const path, begin, end = "../../docs/BRIDGES.md", "<!-- observed: delivery -->\n", "<!-- end -->"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q", path, begin)
	}
	now := before + begin + table + end + after
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(doc) {
		t.Errorf("%s says something else; go test ./cmd/grapnel-hook -run TestDelivery -update writes:\n%s", path, table)
	}
}

// delivery is a home with one plugin.
type delivery struct {
	*home

	plugin string
	env    []string
	tools  bool // the agent has those of plugins
}

func newDelivery(t *testing.T, bin *home, plugin, config string) *delivery {
	t.Helper()
	dir, err := os.MkdirTemp("", "del") //nolint:usetesting // the test's own directory has a long path
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir)
	d := &delivery{home: &home{dir, filepath.Join(dir, "grapnel", "hook.sock")}, plugin: plugin, env: env}
	t.Cleanup(func() { d.kill(t); _ = os.RemoveAll(dir) })
	if err := os.Symlink(filepath.Join(bin.dir, "bin"), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	d.write(t, "grapnel/grapnel.yaml", "version: 1\nstore: sqlite:"+dir+"/grapnel.db\nplugins:\n  - name: "+plugin+"\n    builtin: "+plugin+"\n    "+strings.ReplaceAll(config, "HOME/", dir+"/")+"\n", 0o600)
	d.write(t, "server", birds, 0o700)
	d.write(t, "hooks.json", `{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "read -r line; line=${line#*in the house of }; echo \"Heron of ${line%%.*}\""}]}]}}`, 0o600)
	return d
}

func (d *delivery) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// grapnel runs the command in a directory of the home. Refused is what it says if it ends with another exit code than 0.
func (d *delivery) grapnel(t *testing.T, dir, in string, args ...string) (out []byte, refused string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(d.dir, "bin", "grapnel"), args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, d.env, strings.NewReader(in)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if err != nil {
		refused = errs.String()
	}
	return out, refused
}

// converse installs the hooks of an agent, has two sessions with it, and says where the plugin's text was in the answers.
func (d *delivery) converse(t *testing.T, host string) string {
	t.Helper()
	dir := filepath.Join(d.dir, "work", host)
	mark := strings.ReplaceAll(said, "NAME", strings.ReplaceAll(host, "-", ""))
	d.write(t, "work/"+host+"/AGENTS.md", mark+"\n", 0o600)
	d.write(t, "work/"+host+"/.env", "TOKEN=x\n", 0o600)
	d.write(t, "work/"+host+"/.agents/skills/bird/SKILL.md", "---\nname: bird\ndescription: "+mark+"\n---\nLook.\n", 0o600)
	scope := "user"
	if host == "vscode" {
		scope = "project"
	}
	out, refused := d.grapnel(t, dir, "", "install", host, "--scope", scope, "--json")
	var cells []string
	if refused != "" {
		if !strings.Contains(refused, "offer tools (tool_bundle): "+d.plugin) || !strings.Contains(refused, "/grapnel mcp --socket") {
			t.Errorf("%s: %s", host, refused)
		}
		if cells = []string{"refused at `install`"}; d.plugin == "mcp" {
			return cells[0]
		}
		out, _ = d.grapnel(t, dir, "", "install", host, "--scope", scope, "--json", "--partial")
		cells[0] += ", but for `--partial`"
	}
	var installed struct {
		Events []string `json:"events"`
		MCP    bool     `json:"mcp"`
	}
	if err := json.Unmarshal(out, &installed); err != nil {
		t.Fatal(err)
	}
	if agents.Lookup(host).Plugin != "" { // the file sends all
		installed.Events = slices.Collect(maps.Keys(agents.Lookup(host).Events))
	}
	d.tools = installed.MCP
	found := d.talk(t, host, dir, installed.Events, mark)
	if cells = append(cells, placesOf(found)...); len(found) == 0 && d.plugin != "mcp" {
		cells = append(cells, "recorded only ("+d.recorded(t, dir, host)+")")
	}
	if d.tools && d.offers(t, dir) {
		cells = append(cells, "tools")
	}
	return strings.Join(cells, "; ")
}

// talk returns in which of three turns the answer to a step had the text. The second session begins behind the second.
func (d *delivery) talk(t *testing.T, host, dir string, events []string, mark string) map[agent.Step][]int {
	t.Helper()
	found := map[agent.Step][]int{}
	send := func(turn int, step agent.Step, prompt string) {
		if i := slices.IndexFunc(events, func(event string) bool { return agents.Lookup(host).Events[event].Step == step }); i >= 0 {
			event, session := events[i], fmt.Sprintf("%s-%d", host, (turn+1)/2)
			payload := d.payload(t, host, event, session, dir, prompt, turn)
			code, out, errs := d.hook(t, strings.NewReader(payload), "--socket", d.socket, host, event)
			if code != 0 {
				t.Fatalf("%s %s: exit code %d: %s", host, event, code, errs)
			}
			if strings.Contains(strings.ReplaceAll(out, prompt, ""), mark) || strings.Contains(out, "is protected (") {
				found[step] = append(found[step], turn)
			}
			if strings.Contains(out, "Skills are") && strings.Contains(out, "call the tool read_skill") != d.tools {
				t.Errorf("%s has tools: %t, and is told: %s", host, d.tools, out)
			}
		}
	}
	for turn, prompt := range []string{"Remember that my name is " + mark + ".", "Thank you.", "What is my name?"} {
		turn++
		prompt += " We are in the house of " + strings.TrimPrefix(mark, "Heron of ") + "."
		if turn != 2 {
			send(turn, agent.StepSessionStart, "")
		}
		send(turn, agent.StepPrompt, prompt)
		if send(turn, agent.StepToolCall, prompt); !slices.Contains(found[agent.StepToolCall], turn) || d.plugin != "fileguard" { // which denies it
			send(turn, agent.StepToolResult, prompt)
		}
		send(turn, agent.StepText, prompt)
		send(turn, agent.StepStop, prompt)
		if turn == 2 {
			send(turn, agent.StepSessionEnd, "")
		}
		if turn == 1 && d.plugin == "memory" { // it is stored behind the turn
			d.await(t, dir, mark, "memory", "list", "--workspace", "local", "--json")
		}
	}
	return found
}

// await runs a command until it prints a text.
func (d *delivery) await(t *testing.T, dir, text string, args ...string) {
	t.Helper()
	for begun := time.Now(); ; {
		out, errs := d.grapnel(t, dir, "", args...)
		if strings.Contains(string(out), text) {
			return
		} else if time.Since(begun) > patience {
			t.Fatalf("%q never says %q: %s%s", args, text, out, errs)
		}
	}
}

// TestNotDelivered: what was recalled and does not reach the model has a row that says why.
func TestNotDelivered(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts gateways")
	}
	t.Parallel()

	bin := newHome(t, "grapnel")
	memory := firstParty[slices.IndexFunc(firstParty, func(p struct{ name, config string }) bool { return p.name == "memory" })].config
	for _, tt := range []struct{ host, config, why string }{
		{"vscode", memory, "recalled, not delivered: the section memory_recall: no answer of the turn had room for it"}, // the turn has no call
		{"claude-code", strings.Replace(memory, "[memory_recall]", "[other]", 1), "recalled, not delivered: memory.prompt wrote no section with it (forbidden)"},
		{"claude-code", strings.Replace(memory, "policy, context", "policy", 1), "recalled, not delivered: memory.prompt wrote no section with it (succeeded)"},
	} {
		d := newDelivery(t, bin, "memory", tt.config)
		for i, prompt := range []string{"Remember that my dog is called Rex.", "What is my dog called?"} {
			for _, event := range []string{"UserPromptSubmit", "Stop"} {
				if code, out, errs := d.hook(t, strings.NewReader(d.payload(t, tt.host, event, "s", d.dir, prompt, i)), "--socket", d.socket, tt.host, event); code != 0 || strings.Contains(out, "Rex") {
					t.Fatalf("%s: exit code %d: %s%s", event, code, out, errs)
				}
			}
			if i == 0 {
				d.await(t, d.dir, "Rex", "memory", "list", "--workspace", "local", "--json")
			}
		}
		d.await(t, d.dir, tt.why, "explain", "memory_recall")
		d.await(t, d.dir, tt.why, "explain", "memory")
		found, _ := d.grapnel(t, d.dir, "", "manifest", "find", "--diagnostic", "not_delivered", "--json")
		if !strings.Contains(string(found), `"total": 1`) {
			t.Errorf("%s: %s", tt.why, found)
		}
	}
}

// payload is an event with the fields of all agents' shapes.
func (*delivery) payload(t *testing.T, host, event, session, dir, prompt string, turn int) string {
	t.Helper()
	made, _ := install.Lookup(host).Synthetic(event, session, dir)
	fields := map[string]any{"hook_event_name": event, "session_id": session, "conversation_id": session, "cwd": dir}
	if made != nil {
		fields = map[string]any{}
		if err := json.Unmarshal(made, &fields); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"prompt_id", "turn_id", "generation_id"} {
		fields[name] = fmt.Sprint(session, turn)
	}
	fields["prompt"], fields["transformedPrompt"] = prompt, prompt
	payload, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(payload)
}

// offers reports whether the MCP server that the agent starts lists a tool of the plugin.
func (d *delivery) offers(t *testing.T, dir string) bool {
	t.Helper()
	return strings.Contains(d.mcp(t, dir, `"tools/list"`), `"inputSchema"`)
}

// mcp makes a request of the MCP server that the agent starts.
func (d *delivery) mcp(t *testing.T, dir, request string) string {
	t.Helper()
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":`
	out, refused := d.grapnel(t, dir, begin+request+"}\n", "mcp", "--socket", d.socket)
	if refused != "" {
		t.Error(refused)
	}
	return string(out)
}

// TestWishHolds: what the user wishes of a prompt holds for the calls that the agent makes over the MCP server, until the
// turn ends. The prompt of a subagent is nobody's wish.
func TestWishHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts gateways")
	}
	t.Parallel()

	bin := newHome(t, "grapnel")
	memory := firstParty[slices.IndexFunc(firstParty, func(p struct{ name, config string }) bool { return p.name == "memory" })].config
	const refused = `"isError":true`
	for _, tt := range []struct{ policy, event, prompt, want, behind string }{
		{"normal", "UserPromptSubmit", "Do not remember this. My passphrase is SWORDFISH.", refused, `\"added\"`},
		{"no_save", "UserPromptSubmit", "Remember that my fish is SWORDFISH.", `\"added\"`, refused},
		{"normal", "SubagentStart", "Do not remember this.", `\"added\"`, `\"known\"`},
	} {
		d := newDelivery(t, bin, "memory", memory+"\n    config: {default_policy: "+tt.policy+"}")
		for i, want := range []string{tt.want, tt.behind} {
			event := []string{tt.event, "Stop"}[i]
			if code, _, errs := d.hook(t, strings.NewReader(d.payload(t, "claude-code", event, "s", d.dir, tt.prompt, 1)), "--socket", d.socket, "claude-code", event); code != 0 {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if got := d.mcp(t, d.dir, `"tools/call","params":{"name":"memory_remember","arguments":{"text":"SWORDFISH"}}`); !strings.Contains(got, want) {
				t.Errorf("%q, %s: %s, want %s", tt.prompt, event, got, want)
			}
		}
	}
}

// recorded returns why the record has the plugin's text and the model does not.
func (d *delivery) recorded(t *testing.T, dir, host string) string {
	t.Helper()
	out, refused := d.grapnel(t, dir, "", "manifest", "show", "latest", "--thread", host+"-2", "--json", "--store", "sqlite:"+d.dir+"/grapnel.db")
	var m struct {
		Omitted     []phases.Omitted    `json:"omitted"`
		Diagnostics []phases.Diagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err, refused)
	}
	var why []string
	for _, o := range m.Omitted {
		if o.Owner == d.plugin {
			why = append(why, "`"+o.Reason+"`")
		}
	}
	for _, diag := range m.Diagnostics {
		if diag.Code == "read_by_agent" {
			why = append(why, "the agent reads it itself")
		}
	}
	if len(why) == 0 {
		t.Errorf("%s: nothing arrived, and the record does not say why: %s", host, out)
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(why))), ", ")
}

// placesOf are the places of a text, in words.
func placesOf(found map[agent.Step][]int) (places []string) {
	for _, p := range []struct {
		step agent.Step
		name string
	}{{agent.StepPrompt, "prompt"}, {agent.StepToolCall, "call"}, {agent.StepToolResult, "result"}, {agent.StepStop, "stop"}} {
		switch when := slices.Compact(found[p.step]); {
		case len(when) == 0:
		case slices.Equal(when, []int{1, 2, 3}):
			places = append(places, "each "+p.name)
		case slices.Equal(when, []int{1, 3}):
			places = append(places, "first "+p.name+" of a session")
		default:
			places = append(places, p.name+" "+strings.Trim(strings.ReplaceAll(fmt.Sprint(when), " ", " and "), "[]")+" of 3")
		}
	}
	return places
}

// TestServerOfRepository: an agent has plugins' tools by a file of the project only if that names this grapnel.
func TestServerOfRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a gateway")
	}
	t.Parallel()

	bin := newHome(t, "grapnel")
	d := newDelivery(t, bin, "skills", firstParty[slices.IndexFunc(firstParty, func(p struct{ name, config string }) bool { return p.name == "skills" })].config)
	for i, file := range []struct{ host, path, text string }{
		{"claude-code", ".mcp.json", `{"mcpServers": {"grapnel": {"command": "PROGRAM", "args": ["mcp"]}}}`},
		{"opencode", ".opencode/plugins/grapnel.ts", `const server: string[] = ["PROGRAM","mcp"]`},
	} {
		for j, program := range []string{filepath.Join(d.dir, "bin", "grapnel"), "/nowhere/grapnel", "./grapnel", "WORK/grapnel"} {
			dir := fmt.Sprintf("work/%d-%d", i, j)
			d.write(t, dir+"/.agents/skills/bird/SKILL.md", "---\nname: bird\ndescription: Heron\n---\nLook.\n", 0o600)
			d.write(t, dir+"/grapnel", "#!/bin/sh\n", 0o700)
			d.write(t, dir+"/"+file.path, strings.ReplaceAll(strings.ReplaceAll(file.text, "PROGRAM", program), "WORK", filepath.Join(d.dir, dir)), 0o600)
			session := fmt.Sprint(file.host, j)
			code, out, errs := d.hook(t, strings.NewReader(d.payload(t, file.host, "UserPromptSubmit", session, filepath.Join(d.dir, dir), "Hello.", 1)), "--socket", d.socket, file.host, "UserPromptSubmit")
			if code != 0 || strings.Contains(out, "call the tool read_skill") != (j == 0) {
				t.Errorf("%s, %s: exit code %d: %s%s", file.path, program, code, out, errs)
			}
		}
	}
}
