package chain

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

func TestAgentOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ preset, path, agent, remedy string }{
		{"default", "CLAUDE.md", "Claude Code", "fallback_names: [CLAUDE.md] would read it, and so would the preset claude"},
		{"default", "a/GEMINI.md", "Gemini CLI", "fallback_names: [GEMINI.md] would read it, and so would the preset gemini"},
		{"default", ".github/copilot-instructions.md", "Copilot", "fallback_names: [.github/copilot-instructions.md] would read it"},
		{"gemini", "AGENTS.md", "many agents", "fallback_names: [AGENTS.md] would read it, and so would the preset codex"},
		{"cursor", ".cursorrules", "", ""},
		{"claude", ".cursorrules", "Cursor", "fallback_names: [.cursorrules] would read it, and so would the preset cursor"},
	}
	for _, tt := range tests {
		o := preset(t, Preset(tt.preset))
		if agent, remedy := o.AgentOf(tt.path); agent != tt.agent || remedy != tt.remedy {
			t.Errorf("%s, %s: got %q, %q", tt.preset, tt.path, agent, remedy)
		}
	}
}

// TestHostileImports tries to have what lies outside read, listed or waited for.
func TestHostileImports(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("x/", 30)
	mentions := strings.Join([]string{
		"@~/.ssh/id_rsa", "@/etc/passwd", "@/proc/self/environ", "@../secret", "@./link", "@./dirlink/secret", "@./.git/config", "@./huge.md", "@./CLAUDE.md",
		"@GEMINI.md", "@AGENTS.md", "@./fifo", "@./dir", "@./binary.md", "@./a.md", "@" + deep, "@\x00.md", "@./" + strings.Repeat("y", 5000), "@file:///etc/passwd",
	}, " ") + "\n" + strings.Repeat("@./a.md ", 3000) + strings.Repeat("`", 100000) + strings.Repeat("<!--", 30000) + "\n" + strings.Repeat("@x ", 30000)
	for _, name := range []Preset{PresetClaude, PresetGemini, PresetOpencode, PresetCursor, PresetDefault} {
		base := build(t, files{
			"home/.ssh/id_rsa": "key", "secret": "key", "out/secret": "key", "out/rules/x.md": "key", "r/.git/config": "key",
			"r/link": "-> ../secret", "r/dirlink": "-> ../out", "r/dir/": "", "r/huge.md": strings.Repeat("huge ", 500_000), "r/binary.md": "\x00key",
			"r/a.md": "@b.md", "r/b.md": "@a.md\n@./b.md\n",
			"r/CLAUDE.md": mentions, "r/GEMINI.md": mentions, "r/AGENTS.md": mentions + "\n@../secret\n@./link\n@./a.md\n",
			"r/.claude/rules/up.md": "-> ../../../secret", "r/.claude/rules/out": "-> ../../../out/rules", "r/.claude/rules/loop": "-> ..",
			"r/.claude/rules/x/x/x/x/x/x/x/x/x/x/deep.md": "key too deep", "r/.cursor": "-> ../out",
			"r/.cursorrules": "-> /proc/self/environ",
		})
		if err := mkfifo(filepath.Join(base, "r/fifo")); err != nil {
			t.Skipf("no fifos here: %v", err)
		}
		o, err := ForPreset(name, Places{Home: filepath.Join(base, "home")})
		if err != nil {
			t.Fatal(err)
		}
		if o.Managed = ""; name == PresetDefault {
			o.Imports = ImportLines
		}
		view := &faultFS{FS: OS{}}
		c := Resolve(view, filepath.Join(base, "r"), o)
		checkOpened(t, view, filepath.Join(base, "secret"), filepath.Join(base, "out"), filepath.Join(base, "r/.git"), filepath.Join(base, "home/.ssh"))
		r := Render(c, Budget{plenty, plenty})
		if strings.Contains(r.Text, "key") || view.open != 0 {
			t.Errorf("%s: %d handles left open, and the text has a key: %t", name, view.open, strings.Contains(r.Text, "key"))
		}
		if len(view.opened) > 600 || view.read > 3*maxChain {
			t.Errorf("%s: %d files and %d bytes were read", name, len(view.opened), view.read)
		}
	}
}

// TestManyRules bounds what a directory of rules costs.
func TestManyRules(t *testing.T) {
	t.Parallel()
	tree := files{".git/": ""}
	for i := range maxRules + agentsdoctest.Rounds(40) + 5 {
		tree[".claude/rules/"+strings.Repeat("r", 1+i%40)+string(rune('a'+i/40))+".md"] = "rule"
	}
	base := build(t, tree)
	c := Resolve(OS{}, base, preset(t, PresetClaude))
	capped := 0
	for _, d := range c.Diagnostics {
		if d.Code == CodeReadCap {
			capped++
		}
	}
	if len(c.Sources) > maxRules || capped != 1 {
		t.Errorf("%d sources, told %d times", len(c.Sources), capped)
	}
}
