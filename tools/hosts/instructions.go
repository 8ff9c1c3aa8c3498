package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// instructionFiles are below the home, by the preset. The agent works in tree/sub, and what it does there is what
// docs/AGENTSDOC.md says: nothing of these files is a difference on purpose.
func instructionFiles(preset string) map[string]string {
	switch preset {
	case "claude":
		return map[string]string{
			"tree/.git/HEAD": "ref: refs/heads/main\n", "tree/CLAUDE.md": "---\ntitle: x\n---\n# Root\n<!-- no\n\nmore -->\nText <!-- of a line -->\n",
			"tree/.claude/CLAUDE.md": "Beside it.\n", "tree/.claude/rules/a.md": "A rule.\n", "tree/CLAUDE.local.md": "Mine.\n", "tree/AGENTS.md": "Not read.\n",
			"tree/sub/.claude/rules/a.md": "---\npaths: \"*.go\"\n---\nNot now.\n", "tree/sub/.claude/rules/b/c.md": "---\nglobs: \"*.go\"\n---\nA rule below.\n",
			"tree/sub/CLAUDE.md": claudeImports, "tree/sub/in/CLAUDE.md": "Not read.\n",
			"tree/sub/a_b.md": "Emphasis.\n", "tree/sub/span.md": "No.\n", "tree/sub/fence.md": "No.\n", "tree/sub/item.md": "In code of an item.\n", "tree/sub/tag.md": "A tag.\n",
			"tree/sub/image.md": "No.\n", "tree/sub/open.md": "No.\n", "tree/sub/x.dat": "No.\n", "tree/sub/block.md": "No.\n", "tree/sub/Makefile": "No suffix.\n",
			"tree/sub/1.md": "@2.md\n", "tree/sub/2.md": "@3.md\n", "tree/sub/3.md": "@4.md\n", "tree/sub/4.md": "@5.md\n", "tree/sub/5.md": "Too deep.\n",
			".claude/CLAUDE.md": "Of the person. @own.md\n", ".claude/own.md": "Imported.\n", ".claude/rules/u.md": "A rule of the person.\n",
		}
	case "codex":
		return map[string]string{
			"tree/.git/HEAD": "ref: refs/heads/main\n", "tree/AGENTS.md": "Root @docs.md\r\nline\r\n\n\n", "tree/docs.md": "Not read.\n", ".codex/AGENTS.md": "\n  Of the person.  \n\n",
			"tree/sub/AGENTS.md": "Not read.\n", "tree/sub/AGENTS.override.md": "Mine. " + strings.Repeat("ä", 20_000) + "\n", "tree/sub/in/AGENTS.md": "Not read.\n",
		}
	case "gemini":
		return map[string]string{
			"tree/.git/HEAD": "ref: refs/heads/main\n", "tree/GEMINI.md": "Root @docs.md and `@no.md`\n", "tree/docs.md": "Docs @deep.md\n", "tree/deep.md": "Deep.\n",
			"tree/no.md": "No.\n", "tree/sub/GEMINI.md": "  Sub @./x.txt @missing.md\n\n```\n@no.md\n```\n", "tree/sub/x.txt": "X", "tree/sub/AGENTS.md": "Not read.\n",
		}
	case "opencode":
		return map[string]string{
			"tree/.git/HEAD": "ref: refs/heads/main\n", "tree/AGENTS.md": "Root @docs.md\n\n", "tree/docs.md": "Not read.\n", "tree/sub/AGENTS.md": "  Sub.\n", "tree/sub/CLAUDE.md": "Not read.\n",
		}
	}
	return nil
}

const claudeImports = "See **the file @a_b.md** and `@span.md`, <b>@tag.md</b> ![@image.md](x) [@open.md]\n\n- Run `cat @item.md now`.\n\n```\n@fence.md\n```\n\n" +
	"@x.dat @Makefile @missing.md mail@span.md @1.md\n<div>\n@block.md\n</div>\n"

// compareInstructions makes sure that the first request had the text that Grapnel has for the preset.
func (t *trial) compareInstructions(ctx context.Context) error {
	want, err := t.grapnel(ctx, "agents", "chain", "--preset", t.check.preset, "--text", "--dir", t.dir)
	if err != nil {
		return err
	}
	requests := t.model.seen()
	if len(requests) == 0 || !slices.ContainsFunc(requests[0], func(i item) bool { return strings.Contains(i.Text, string(want)) }) {
		return fmt.Errorf("the model did not get what the preset %s has:\n%s", t.check.preset, want)
	}
	return nil
}
