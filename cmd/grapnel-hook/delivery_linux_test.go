package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
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

// firstParty are the plugins, with a configuration that gives them something to say. The default run has these agents: one for
// each place where the text may arrive; GRAPNEL_LONG=1 has all.
var firstParty = []struct{ name, agents, config string }{
	{"agentsdoc", "claude-code gemini", `grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state], read: ['*']}
    env: {pass: [HOME, XDG_CONFIG_HOME]}`},
	{"commandhooks", "claude-code vscode", `grants: {contribute: [decision, prompt_context, reminder, rewrite], see: [arguments, model, outcome, result, source, text, touched_paths, user_text]}
    config: {format: claude, files: [HOME/hooks.json]}`},
	{"fileguard", "opencode", `grants: {contribute: [decision, rewrite], see: [user_text, arguments, result]}`},
	{"mcp", "amp claude-code", `grants: {contribute: [tool_bundle], tools: ['*'], host: [state]}
    config: {servers: {birds: {command: [HOME/server]}}}`},
	{"memory", "amp codex vscode", `grants:
      contribute: [policy, prompt_context, audit, tool_bundle, prompt_section]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: [memory_search, memory_list, memory_get, memory_remember, memory_forget]
      see: [user_text, assistant_text, status, tool_events, recall_plan, tool_calling, available_tools, policy, context, metadata]
    env: {pass: [HOME, XDG_DATA_HOME]}`},
	{"skills", "amp codex opencode vscode", `grants: {contribute: [prompt_section, tool_bundle], sections: [skills_runtime], tools: [read_skill], see: [tool_calling, available_tools, touched_paths], read: ['*']}`},
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
// ours, and compares what came back with the table in docs/BRIDGES.md.
func TestDelivery(t *testing.T) {
	t.Parallel()

	const path, begin, end = "../../docs/BRIDGES.md", "<!-- observed: delivery -->\n", "<!-- end -->"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(doc), begin)
	table, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no %q", path, begin)
	}
	rows := make([]string, len(firstParty))
	t.Run("plugins", func(t *testing.T) {
		for i, p := range firstParty {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()

				d := newDelivery(t, p.name, p.config)
				if p.name == "skills" {
					d.checkServers(t) // before opencode has ours in a file of the user
				}
				_, row, _ := strings.Cut(table, "\n| `"+p.name+"` | ")
				row, _, _ = strings.Cut(row, " |\n")
				cells := strings.Split(row, " | ")
				rows[i] = "| `" + p.name + "`"
				for n, host := range agents.Names() {
					if all := *update || os.Getenv("GRAPNEL_LONG") == "1"; !all && !slices.Contains(strings.Fields(p.agents), host) {
						continue
					}
					if cell := d.converse(t, host); *update {
						rows[i] += " | " + cell
					} else if n >= len(cells) || cells[n] != cell {
						t.Errorf("%s, %s: %s; go test ./cmd/grapnel-hook -run TestDelivery -update writes the table", path, host, cell)
					}
				}
				rows[i] += " |\n"
			})
		}
	})
	if *update {
		table = "| plugin | `" + strings.Join(agents.Names(), "` | `") + "` |\n" + strings.Repeat("|---", len(agents.Names())+1) + "|\n"
		if err := os.WriteFile(path, []byte(before+begin+table+strings.Join(rows, "")+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// delivery is a home with one plugin.
type delivery struct {
	*home

	plugin string
	tools  bool // the agent has those of plugins
}

func newDelivery(t *testing.T, plugin, config string) *delivery {
	t.Helper()
	d := &delivery{home: newUser(t, "  - name: "+plugin+"\n    builtin: "+plugin+"\n    "+config+"\n"), plugin: plugin}
	d.write(t, "server", birds, 0o700)
	d.write(t, "hooks.json", `{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "read -r line; line=${line#*in the house of }; echo \"Heron of ${line%%.*}\""}]}]}}`, 0o600)
	return d
}

// send sends an event, and returns the answer.
func (d *delivery) send(t *testing.T, host, event, session, dir, prompt string, turn int) string {
	t.Helper()
	code, out, errs := d.hook(t, strings.NewReader(d.payload(t, host, event, session, dir, prompt, turn)), host, event)
	if code != exitAllowed {
		t.Fatalf("%s %s: exit code %d: %s", host, event, code, errs)
	}
	return out
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
	if err := json.Unmarshal([]byte(out), &installed); err != nil {
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
	if d.tools && strings.Contains(d.mcp(t, dir, `"tools/list"`), `"inputSchema"`) {
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
			out := d.send(t, host, events[i], fmt.Sprintf("%s-%d", host, (turn+1)/2), dir, prompt, turn)
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
		if strings.Contains(out, text) {
			return
		} else if time.Since(begun) > patience {
			t.Fatalf("%q never says %q: %s%s", args, text, out, errs)
		}
	}
}

// TestMemory: what the user wishes of a prompt holds for the calls that the agent makes over the MCP server, until the turn ends;
// the prompt of a subagent is nobody's wish. What was recalled and does not reach the model has a row that says why.
func TestMemory(t *testing.T) {
	t.Parallel()

	memory := firstParty[slices.IndexFunc(firstParty, func(p struct{ name, agents, config string }) bool { return p.name == "memory" })].config
	type wish struct{ event, prompt, want, behind string }
	const added, refused = `\"added\"`, `"isError":true`
	for i, tt := range []struct {
		config    string
		wishes    []wish
		host, why string
	}{
		{
			memory,
			[]wish{
				{"UserPromptSubmit", "Do not remember this. My passphrase is SWORDFISH.", refused, added},
				{"SubagentStart", "Do not remember this.", added, `\"known\"`},
			},
			"vscode", "recalled, not delivered: the section memory_recall: no answer of the turn had room for it", // the turn has no call
		},
		{
			strings.Replace(memory, "[memory_recall]", "[other]", 1) + "\n    config: {default_policy: no_save}",
			[]wish{{"UserPromptSubmit", "Remember that my fish is SWORDFISH.", added, refused}},
			"claude-code", "recalled, not delivered: memory.prompt wrote no section with it (forbidden)",
		},
		{strings.Replace(memory, "policy, context", "policy", 1), []wish{{"UserPromptSubmit", "Hello.", added, `\"known\"`}}, "claude-code", "recalled, not delivered: memory.prompt wrote no section with it (succeeded)"},
	} {
		if i == 2 && os.Getenv("GRAPNEL_LONG") != "1" {
			continue
		}
		d := newDelivery(t, "memory", tt.config)
		for j, w := range tt.wishes {
			for k, want := range []string{w.want, w.behind} {
				event := []string{w.event, "Stop"}[k]
				d.send(t, "claude-code", event, fmt.Sprint("wish", j), d.dir, w.prompt, 1)
				if got := d.mcp(t, d.dir, fmt.Sprintf(`"tools/call","params":{"name":"memory_remember","arguments":{"text":"SWORDFISH %d"}}`, j)); !strings.Contains(got, want) {
					t.Errorf("%q, %s: %s, want %s", w.prompt, event, got, want)
				}
			}
		}
		const question = "What is SWORDFISH 0?"
		if out := d.send(t, tt.host, "UserPromptSubmit", "s", d.dir, question, 2) + d.send(t, tt.host, "Stop", "s", d.dir, question, 2); strings.Contains(out, "SWORDFISH") {
			t.Errorf("it was delivered: %s", out)
		}
		d.await(t, d.dir, tt.why, "explain", "memory_recall")
		d.await(t, d.dir, tt.why, "explain", "memory")
		if found, _ := d.grapnel(t, d.dir, "", "manifest", "find", "--diagnostic", "not_delivered", "--json"); !strings.Contains(found, `"total": 1`) {
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

// mcp makes a request of the MCP server that the agent starts.
func (d *delivery) mcp(t *testing.T, dir, request string) string {
	t.Helper()
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":`
	out, refused := d.grapnel(t, dir, begin+request+"}\n", "mcp")
	if refused != "" {
		t.Error(refused)
	}
	return out
}

// recorded returns why the record has the plugin's text and the model does not.
func (d *delivery) recorded(t *testing.T, dir, host string) string {
	t.Helper()
	out, refused := d.grapnel(t, dir, "", "manifest", "show", "latest", "--thread", host+"-2", "--json")
	var m struct {
		Omitted     []phases.Omitted    `json:"omitted"`
		Diagnostics []phases.Diagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil {
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

// checkServers: an agent has plugins' tools by a file of the project only if that names this grapnel.
func (d *delivery) checkServers(t *testing.T) {
	t.Helper()
	for i, file := range []struct{ host, path, text string }{
		{"claude-code", ".mcp.json", `{"mcpServers": {"grapnel": {"command": "PROGRAM", "args": ["mcp"]}}}`},
		{"opencode", ".opencode/plugins/grapnel.ts", `const server: string[] = ["PROGRAM","mcp"]`},
	} {
		for j, program := range []string{filepath.Join(d.dir, "bin", "grapnel"), "/nowhere/grapnel", "./grapnel", "WORK/grapnel"} {
			work := fmt.Sprintf("work/%d-%d", i, j)
			dir := filepath.Join(d.dir, work)
			d.write(t, work+"/.agents/skills/bird/SKILL.md", "---\nname: bird\ndescription: Heron\n---\nLook.\n", 0o600)
			d.write(t, work+"/grapnel", "#!/bin/sh\n", 0o700)
			d.write(t, work+"/"+file.path, strings.ReplaceAll(strings.ReplaceAll(file.text, "PROGRAM", program), "WORK", dir), 0o600)
			if out := d.send(t, file.host, "UserPromptSubmit", fmt.Sprint(file.host, j), dir, "Hello.", 1); strings.Contains(out, "call the tool read_skill") != (j == 0) {
				t.Errorf("%s, %s: %s", file.path, program, out)
			}
		}
	}
}
