package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// modFiles are a mod in the user's skills, and one in a marketplace that is a directory.
func modFiles() map[string]string {
	files := map[string]string{"market/.claude-plugin/marketplace.json": `{"name": "near", "owner": {"name": "x"}, "plugins": [{"name": "two", "source": "./"}]}`}
	for dir, name := range map[string]string{"../.claude/skills/dir/": "one", "market/": "two"} {
		files[dir+".claude-plugin/plugin.json"] = `{"name": "` + name + `"}`
		files[dir+"hooks/hooks.json"] = `{"modules": ["./register.js"]}`
		files[dir+"hooks/register.js"] = "import { more } from './more'\nexport function register(o) { o('tool.\\x63heck', ($, e, next) => next(e)); more(o) }\n"
		files[dir+"hooks/more.ts"] = "export const more = (on: any) => { on(`classic.Stop`, ($: any, e: any, next: any) => next(e)) } /* ' */\n"
	}
	return files
}

// mods compares the mods that hook check finds, and their events, with those that Claude Code's log says are loaded.
func (t *trial) mods(ctx context.Context) error {
	log := filepath.Join(t.home, "debug.log")
	args, env, err := t.agent.prepare(t, nil)
	err = cmp.Or(err, writeJSON(filepath.Join(t.home, ".claude", "settings.json"), map[string]any{
		"enabledPlugins":         map[string]bool{"two@near": true},
		"extraKnownMarketplaces": map[string]any{"near": map[string]any{"source": map[string]string{"source": "directory", "path": filepath.Join(t.dir, "market")}}},
	}))
	_, installed := t.grapnel(ctx, "install", t.agent.name)
	var check struct{ Above []struct{ ID, Events any } }
	if err = cmp.Or(err, installed, t.converse(ctx, append([]string{"--debug-file", log}, args...), env), t.asked(ctx, &check, "hook", "check", t.agent.name)); err != nil {
		return err
	}
	text, err := os.ReadFile(log)
	want, got := []string{}, []string{}
	for _, m := range regexp.MustCompile(`hooks module (\S+) loaded \(worker,.*; events: (\S+)`).FindAllStringSubmatch(string(text), -1) {
		want = append(want, m[1]+" ["+strings.Join(slices.Sorted(strings.SplitSeq(m[2], ",")), " ")+"]")
	}
	for _, row := range check.Above {
		got = append(got, fmt.Sprint(row.ID, " ", row.Events))
	}
	slices.Sort(want)
	if slices.Sort(got); len(want) != 2 || !slices.Equal(want, got) {
		err = fmt.Errorf("hook check finds %q, and Claude Code has loaded %q", got, want)
	}
	return err
}
