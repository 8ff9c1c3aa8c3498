package claudecode_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
)

var update = flag.Bool("update", false, "write the plugin's hooks.json")

const mostLines = 400 // of the mod

// TestPluginHooks: the plugin that a marketplace has calls grapnel-hook for each event that means something here.
func TestPluginHooks(t *testing.T) {
	t.Parallel()

	host := install.Lookup("claude-code")
	events := host.WantedEvents(func(string) bool { return true })
	hooks := map[string][]any{}
	for _, e := range events {
		entry := host.Install.Entry(&agent.Command{Program: agent.Program}, host.Agent, e)
		hooks[e] = []any{map[string]any{"hooks": []any{entry}}}
		if host.Events[e].Step.Decides() != (entry.OnFailure == "block") {
			t.Errorf("%s: onFailure is %q", e, entry.OnFailure)
		}
	}
	want, err := json.MarshalIndent(map[string]any{"modules": []string{"./register.js"}, "hooks": hooks}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("plugin", "hooks", "hooks.json")
	if *update {
		if err := os.WriteFile(file, append(want, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want)+"\n", string(got)); diff != "" {
		t.Errorf("%s is stale; run: go test ./internal/agents/claudecode -update\n%s", file, diff)
	}
}

// TestMod: the mod that install writes is the plugin's with the place of the gateway filled in, and parses.
func TestMod(t *testing.T) {
	t.Parallel()

	host := install.Lookup("claude-code")
	files := host.Install.Mod(&agent.Command{Program: "/a 'b'/grapnel-hook", Socket: "/s", Config: "/c.yaml"}, host.Agent)
	source := files["hooks/register.js"]
	if want := `const PROGRAM = ["/a 'b'/grapnel-hook","--socket","/s","--config","/c.yaml"] `; !bytes.Contains(source, []byte("\n"+want)) {
		t.Errorf("the mod lacks %s", want)
	}
	if n := bytes.Count(source, []byte("\n")); n > mostLines {
		t.Errorf("the mod has %d lines, more than %d", n, mostLines)
	}
	if !bytes.HasPrefix(source, []byte("// Grapnel's mod for Claude Code: ")) {
		t.Error("the mod does not begin by saying what it is")
	}
	if strings.Contains(string(source), "next.to") {
		t.Error("next.to keeps the mod from being loaded where nobody has seated it")
	}
	var manifest struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(files[".claude-plugin/plugin.json"], &manifest); err != nil || !strings.HasPrefix(host.Install.ModSeat, manifest.Name+"@") {
		t.Errorf("the plugin is %q, its seat %q, %v", manifest.Name, host.Install.ModSeat, err)
	}
	if !bytes.Contains(source, []byte("const OURS = '"+manifest.Name+"'")) {
		t.Errorf("the mod does not know its name %s", manifest.Name)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node, which checks the syntax, is not in the PATH")
	}
	file := filepath.Join(t.TempDir(), "register.mjs")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), node, "--check", file).CombinedOutput(); err != nil {
		t.Errorf("node --check: %v\n%s", err, out)
	}
}

// TestMarketplaces: the repository's marketplace has the plugin where it is.
func TestMarketplaces(t *testing.T) {
	t.Parallel()

	for _, root := range []string{"plugin", filepath.Join("..", "..", "..")} {
		data, err := os.ReadFile(filepath.Join(root, ".claude-plugin", "marketplace.json"))
		if err != nil {
			t.Fatal(err)
		}
		var market struct {
			Name    string `json:"name"`
			Plugins []struct {
				Name   string `json:"name"`
				Source string `json:"source"`
			} `json:"plugins"`
		}
		if err := json.Unmarshal(data, &market); err != nil {
			t.Fatal(err)
		}
		if len(market.Plugins) != 1 || market.Name != "grapnel" || market.Plugins[0].Name != "grapnel" {
			t.Fatalf("%s: %s", root, data)
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(market.Plugins[0].Source), ".claude-plugin", "plugin.json")); err != nil {
			t.Error(err)
		}
	}
}
