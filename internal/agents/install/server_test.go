package install

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// server is the one of the tests, for a host.
func server(h *Host) *agent.Server {
	return h.Server("/it's \"me\"\n\u2028/grapnel", []string{"mcp", "--socket", "/s"}, func(name string) string {
		return map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/d"}[name]
	})
}

// TestServerFiles: whatever a file looks like, the server comes in, is found again, and goes; what is another program's, or
// cannot be taken out, is refused.
func TestServerFiles(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct{ host, text, add string }{
		"no servers":            {"claude-code", `{"numStartups": 3}`, ""},
		"others":                {"claude-code", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"a\"}, // mine\n\t},\n}\n", ""},
		"a local scope's":       {"claude-code", `{"projects": {"/p": {"mcpServers": {"grapnel": {"command": "/x/grapnel", "args": ["mcp"]}}}}}`, ""},
		"another program's":     {"claude-code", `{"mcpServers": {"grapnel": {"command": "angler", "args": ["mcp"]}}}`, "line 1: the MCP server grapnel is another program's"},
		"another command":       {"claude-code", `{"mcpServers": {"grapnel": {"command": "grapnel", "args": ["serve"]}}}`, "another program's"},
		"not an object":         {"claude-code", `{"mcpServers": {"grapnel": 7}}`, "another program's"},
		"another member":        {"vscode", `{"mcpServers": {}, "inputs": []}`, ""},
		"no tables":             {"codex", ``, ""},
		"a mark":                {"codex", "\ufeffmodel = \"x\"\n", ""},
		"other tables":          {"codex", "[a]\nb = 1\n\n[mcp_servers.files]\ncommand = \"files\"\n# about c\n[c]\n", ""},
		"an inline table":       {"codex", "mcp_servers = {files = {command = \"files\"}}\n", "written in a way that nothing can be added to"},
		"another's table":       {"codex", "[mcp_servers.grapnel]\nurl = \"https://example.org/mcp\"\n", "another program's"},
		"an array of tables":    {"codex", "[[mcp_servers]]\ncommand = \"files\"\n", "written in a way that nothing can be added to"},
		"a header in a text":    {"codex", "a = \"\"\"\n[mcp_servers.grapnel]\n\"\"\"\n", ""},
		"a text without an end": {"codex", "a = \"\"\"\n", "it is not TOML"},
	} {
		h := Lookup(tt.host)
		places := h.Places(agent.Project, "/h", "/p", func(string) string { return "" })
		place := places[len(places)-1]
		w := &Wanted{Server: server(h)}
		doc, err := place.Parse([]byte(tt.text))
		if err == nil && doc.Has(w) {
			t.Fatalf("%s: it is there already", name)
		}
		if err == nil {
			err = doc.Add(w)
		}
		if (err != nil) != (tt.add != "") || err != nil && !strings.Contains(err.Error(), tt.add) {
			t.Errorf("%s: %v, want %q", name, err, tt.add)
		}
		if err != nil {
			continue
		}
		added := doc.Bytes()
		again, err := place.Parse(added)
		if err != nil || !again.Has(w) {
			t.Errorf("%s: %v: it is not found again:\n%s", name, err, added)
			continue
		}
		if name == "a header in a text" { // which is not ours: it is refused rather than guessed
			if again.Remove() || again.Add(&Wanted{}) == nil {
				t.Errorf("%s: it was removed:\n%s", name, again.Bytes())
			}
			continue
		}
		if !again.Remove() || again.Remove() || string(again.Bytes()) != tt.text && string(again.Bytes()) != tt.text+"\n" {
			t.Errorf("%s: it was\n%q and is\n%q", name, tt.text, again.Bytes())
		}
	}
}

// TestServerByHand: what a person has written or changed goes too, if it starts our program, however it is written.
func TestServerByHand(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`{"mcpServers": {"grapnel": {"command": "grapnel", "args": ["mcp"]}}}`:                                                                         `{}`,
		"[mcp_servers.grapnel]\ncommand = \"/a/grapnel\"\nargs = [\n  \"mcp\",\n]\n[mcp_servers.grapnel.env]\nA = \"b\"\n\n# c's\n[c]\n":               "\n# c's\n[c]\n",
		"a = 1\r\n\r\n[ mcp_servers . \"grapnel\" ] # ours\r\ncommand = \"grapnel\"\r\nargs = [\"mcp\"]\r\nstartup_timeout_sec = 3\r\n":                "a = 1\r\n",
		"[mcp_servers.grapnel.env]\nA = \"b\"\n\n[mcp_servers.x]\ncommand = \"x\"\n\n[mcp_servers.grapnel]\ncommand = \"grapnel\"\nargs = [\"mcp\"]\n": "\n[mcp_servers.x]\ncommand = \"x\"\n",
		"[mcp_servers.\"grapnel.x\"]\ncommand = \"x\"\n[mcp_servers.grapnel]\ncommand = \"grapnel\"\nargs = [\"mcp\"]\n":                               "[mcp_servers.\"grapnel.x\"]\ncommand = \"x\"\n",
	} {
		host := "claude-code"
		if !strings.HasPrefix(text, "{") {
			host = "codex"
		}
		places := Lookup(host).Places(agent.Project, "/h", "/p", func(string) string { return "" })
		doc, err := places[1].Parse([]byte(text))
		if err != nil || !doc.Remove() || string(doc.Bytes()) != want {
			t.Errorf("%v: %q is\n%q, want\n%q", err, text, doc.Bytes(), want)
		}
	}
}

// FuzzTables: what is added to a file of Codex's is found again, and nothing else is changed or removed.
func FuzzTables(f *testing.F) {
	for _, text := range []string{"", "a = 1\n[b]\nc = [\n[1],\n]\n", "[mcp_servers.files]\ncommand = \"x\"\n\n[mcp_servers.files.env]\nA=''\n", "a = '''\n[mcp_servers.grapnel]\n'''"} {
		f.Add(text)
	}
	w := &Wanted{Server: server(Lookup("codex"))}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := parseTables([]byte(text))
		if err != nil || doc.Has(w) || doc.Add(w) != nil {
			return
		}
		again, err := parseTables(doc.Bytes())
		if err != nil || !again.Has(w) || !strings.HasPrefix(string(again.Bytes()), text) {
			t.Fatalf("%v: %q to\n%q", err, text, doc.Bytes())
		}
		was := again.all
		if again.Remove() && !sameWithoutOurs(was, again.all) {
			t.Fatalf("%q: %q", text, again.Bytes())
		}
	})
}
