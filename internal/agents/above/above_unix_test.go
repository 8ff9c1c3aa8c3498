//go:build unix

package above

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
)

const (
	manifest = ".claude-plugin/plugin.json"
	hooks    = "hooks/hooks.json"
	register = "hooks/register.js"
	skill    = "home/.claude/skills/m/"
)

// tree is files by their paths: below home, project, and root for those of the system. TREE stands for the directory of all.
type tree map[string]string

// with returns a tree with a mod in a directory, that has a module.
func (t tree) with(dir, name, module string) tree {
	t[dir+manifest], t[dir+hooks], t[dir+register] = `{"name":"`+name+`"}`, `{"modules":["./register.js"]}`, module
	return t
}

func (t tree) write(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range t {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "TREE", filepath.ToSlash(dir))), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// rows are what is found, one a line: kind, id, events, what it can, and whether it has the last word.
func rows(name, dir string, env map[string]string) []string {
	f := &finder{agent: agents.Lookup(name), home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"), root: filepath.Join(dir, "root")}
	f.env = func(name string) string { return env[name] }
	list := []string{}
	for _, r := range f.find() {
		if r.Kind == Own {
			r.Events = nil // they change with the mod
		}
		list = append(list, strings.Join([]string{r.Kind, r.ID, strings.Join(r.Events, " "), strings.Join(r.Can, "; "), strconv.FormatBool(r.Before)}, " | "))
	}
	slices.Sort(list)
	return list
}

const (
	allows = "allow calls that Grapnel denied"
	hides  = "answer or change calls so that Grapnel sees none"
	drops  = "drop or rewrite prompts"
	silent = "keep Grapnel's hooks from running"
	unread = "do anything, since it was not read: "
)

// TestMods: what Claude Code 2.1.332 loads is found, with the events that it says of them.
func TestMods(t *testing.T) {
	t.Parallel()

	market := tree{
		"market/.claude-plugin/marketplace.json": `{"metadata":{"pluginRoot":"./root"},"plugins":[{"name":"a","source":"./plugins/a"},{"name":"b","source":"b"},{"name":"off","source":"./plugins/a"}]}`,
		"home/.claude/settings.json": `{"enabledPlugins":{"a@m":true,"off@m":false,"kept@git":true,"skipped@skills-dir":false},"prependPlugins":["b@m"],
			"extraKnownMarketplaces":{"m":{"source":{"source":"directory","path":"TREE/market"}}},"env":{"CLAUDE_CODE_PLUGIN_DIRS":"TREE/inline"}}`,
		"project/.claude/settings.json":               `{"enabledPlugins":{"b@m":true},"prependPlugins":["a@m"]}`,
		"home/.claude/plugins/installed_plugins.json": `{"version":2,"plugins":{"a@m":[{"installPath":"TREE/cache/a"}],"kept@git":[{"scope":"user","installPath":"TREE/cache/kept"}]}}`,
	}
	market.with("market/plugins/a/", "a", `on("tool.check", f)`).with("market/root/b/", "b", "on('classic.Stop', f)").with("cache/kept/", "kept", "on(`prompt.submit`, f)")
	market.with("cache/a/", "a", `on("http.fetch", f)`).with("inline/", "in", `on("tool.run", f)`).with("home/.claude/skills/skipped/", "skipped", `on("tool.check", f)`)
	place := slices.IndexFunc(agents.Lookup("claude-code").Above, func(a agent.AbovePlace) bool { return a.Own != "" })
	own := strings.Replace(agents.Lookup("claude-code").Above[place].Own, "['grapnel-hook']", `["/bin/grapnel-hook","--socket","/s"]`, 1)
	first := tree{"home/.claude/settings.json": `{"prependPlugins":["grapnel@skills-dir","other@skills-dir"]}`}
	second := tree{"home/.claude/settings.json": `{"prependPlugins":["other@skills-dir","grapnel@skills-dir"]}`}
	for _, pair := range []tree{first, second} {
		pair.with(skill, "grapnel", own).with("home/.claude/skills/o/", "other", `on("tool.check", f)`)
	}
	for name, tt := range map[string]struct {
		tree tree
		env  map[string]string
		want []string
	}{
		"nothing":                           {},
		"skills and plugins without a mod":  {tree: tree{skill + "SKILL.md": "x", "home/.claude/skills/n/" + manifest: "{}", "home/.claude/skills/n/" + hooks: `{"hooks":{}}`}},
		"a directory of skills":             {tree: tree{}.with(skill, "named", `on("tool.check", f)`), want: []string{"mod | named@skills-dir | tool.check | " + allows + " | true"}},
		"another directory of settings":     {tree: tree{}.with("set/skills/m/", "m", `on("tool.check", f)`), env: map[string]string{"CLAUDE_CONFIG_DIR": "TREE/set"}, want: []string{"mod | m@skills-dir | tool.check | " + allows + " | true"}},
		"the project's":                     {tree: tree{}.with("project/.claude/skills/m/", "m", `on("tool.call", f)`), want: []string{"mod | m@skills-dir | tool.call | " + hides + " | true"}},
		"one that only draws":               {tree: tree{}.with(skill, "m", `on("ui.render", f)`), want: []string{"mod | m@skills-dir |  |  | true"}},
		"a marketplace that is a directory": {tree: market, want: []string{"mod | a@m | tool.check | " + allows + " | true", "mod | b@m | classic.Stop | " + silent + " | true", "mod | in@inline | tool.run | " + hides + " | true", "mod | kept@git | prompt.submit | " + drops + " | true"}},
		"Grapnel's own is the first":        {tree: first, want: []string{"Grapnel's mod | grapnel@skills-dir |  |  | true", "mod | other@skills-dir | tool.check | " + allows + " | false"}},
		"another is before Grapnel's own":   {tree: second, want: []string{"Grapnel's mod | grapnel@skills-dir |  |  | false", "mod | other@skills-dir | tool.check | " + allows + " | true"}},
		"no order":                          {tree: tree{}.with(skill, "grapnel", own).with("home/.claude/skills/o/", "other", `on("tool.check", f)`), want: []string{"Grapnel's mod | grapnel@skills-dir |  |  | false", "mod | other@skills-dir | tool.check | " + allows + " | true"}},
		"another of the name":               {tree: tree{}.with(skill, "grapnel", `on("tool.check", f)`), want: []string{"mod | grapnel@skills-dir | tool.check | " + allows + " | true"}},
		"settings that switch off": {
			tree: tree{
				"project/.claude/settings.local.json": `{"disableAllHooks": true}`,
				"root/etc/claude-code/managed-settings.json": `{"allowManagedHooksOnly": true, // all
					"pluginConfigs": {"cc-plugin-sec-default@builtin": {"options": {"allowManagedModsOnly": true}}}}`,
			},
			want: []string{"setting | allowManagedHooksOnly |  | " + silent + " | true", "setting | allowManagedModsOnly |  | keep Grapnel's mod from running | true", "setting | disableAllHooks |  | " + silent + " | true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tt.tree.write(t)
			for name, value := range tt.env {
				tt.env[name] = strings.ReplaceAll(value, "TREE", dir)
			}
			if diff := gocmp.Diff(append([]string{}, tt.want...), rows("claude-code", dir, tt.env)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpelling: each way of writing an event that Claude Code 2.1.332 takes is found, in a module and in what it imports.
func TestSpelling(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		module, more, file string
		want               string
	}{
		"another name":       {module: `export function register(o) { o("tool.check", f) }`, want: "tool.check"},
		"a template":         {module: "on(`tool.check`, f)", want: "tool.check"},
		"brackets":           {module: "on(('tool.check'), f)", want: "tool.check"},
		"a type":             {module: "on(<any>'tool.check', f)", want: "tool.check"},
		"escapes":            {module: `on("\x74ool.\u{63}heck", f); on('tool.\call', f); on('http.fe` + "\\\n" + `tch', f)`, want: "http.fetch tool.call tool.check"},
		"a comment, a quote": {module: "/* ' */ on(/* \" */ 'tool.check' /* ' */, f)", want: "tool.check"},
		"a line between":     {module: "on\n(\n// c\n'*', f)", want: "*"},
		"all of some":        {module: "on('tool.*', f)", want: "tool.*"},
		"all but some":       {module: "on('!tool.*', f)", want: "!tool.*"},
		"a value":            {module: `on("ui.render", {plugin: "*"}, f)`},
		"an import":          {module: `import {g} from "./more.js"`, more: "on('tool.call', f)", file: "hooks/more.js", want: "tool.call"},
		"no suffix":          {module: `import {g} from "../lib/more"`, more: "on('tool.call', f)", file: "lib/more.mts", want: "tool.call"},
		"another suffix":     {module: `import {g} from "./more.js"`, more: "on('tool.call', f)", file: "hooks/more.ts", want: "tool.call"},
		"a directory":        {module: `import {g} from './m'`, more: "on('tool.call', f)", file: "hooks/m/index.js", want: "tool.call"},
		"an escaped import":  {module: `import {g} from '\x2e/m.js'`, more: "on('tool.call', f)", file: "hooks/m.js", want: "tool.call"},
		"each other":         {module: `import {g} from './m.js'`, more: "import './register.js'; on('tool.call', f)", file: "hooks/m.js", want: "tool.call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := tree{}.with(skill, "m", tt.module)
			files[skill+cmp.Or(tt.file, "none.js")] = tt.more
			got := rows("claude-code", files.write(t), nil)
			if len(got) != 1 || strings.Split(got[0], " | ")[2] != tt.want {
				t.Errorf("%q, want %s", got, tt.want)
			}
		})
	}
}

// TestUnread: what cannot be read is a row, and keeps nothing else from being found.
func TestUnread(t *testing.T) {
	t.Parallel()

	link := func(to, name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			file := filepath.Join(dir, name)
			_ = os.Remove(file) // it may not be there
			if err := os.Symlink(strings.ReplaceAll(to, "TREE", dir), file); err != nil {
				t.Fatal(err)
			}
		}
	}
	many := tree{}
	for i := range 2 * mostFiles {
		many.with("home/.claude/skills/"+strconv.Itoa(i)+"/", "m"+strconv.Itoa(i), "")
	}
	imports := tree{}.with(skill, "m", "")
	for i := range 2 * mostFiles {
		imports[skill+register] += "import './" + strconv.Itoa(i) + ".js'\n"
		imports[skill+"hooks/"+strconv.Itoa(i)+".js"] = ""
	}
	long := strings.Repeat("x", mostBytes+1)
	for name, tt := range map[string]struct {
		agent  string
		tree   tree
		change func(t *testing.T, dir string)
		want   string
	}{
		"a module that is long":        {tree: tree{}.with(skill, "m", long), want: "mod | m@skills-dir |  | " + unread + "it is longer than 1 MiB | true"},
		"a module that is missing":     {tree: tree{skill + manifest: `{"name":"m"}`, skill + hooks: `{"modules":["./r.js"]}`}, want: "mod | m@skills-dir |  | " + unread + "no such file or directory | true"},
		"a module elsewhere":           {tree: tree{skill + manifest: `{"name":"m"}`, skill + hooks: `{"modules":["../../o/r.js"]}`, "home/.claude/skills/o/r.js": "x"}, want: "mod | m@skills-dir |  | " + unread + "it is outside of its directory | true"},
		"a module that is a link away": {tree: tree{"r.js": "x"}.with(skill, "m", ""), change: link("TREE/r.js", skill+register), want: "mod | m@skills-dir |  | " + unread + "it is outside of its directory | true"},
		"a device":                     {tree: tree{"home/.claude/x": ""}, change: link("/dev/zero", "home/.claude/settings.json"), want: "setting | settings.json |  | " + unread + "is not a regular file | true"},
		"settings that are no JSON":    {tree: tree{"home/.claude/settings.json": "{"}, want: "setting | settings.json |  | " + unread + "hujson: line 2, column 1: parsing value: unexpected EOF | true"},
		"a manifest that is no JSON":   {tree: tree{skill + manifest: "x", skill + hooks: `{"modules":["./register.js"]}`, skill + register: `on("tool.check", f)`}, want: "mod | m@skills-dir | tool.check | " + allows + " | true"},
		"too many imports":             {tree: imports, want: "mod | m@skills-dir |  | " + unread + "the modules are too much | true"},
		"too many mods":                {tree: many, want: "files | ~/.claude/skills/*/.claude-plugin/plugin.json |  | " + unread + "there are more than 256 | true"},
		"a long plugin":                {agent: "opencode", tree: tree{"project/.opencode/plugin/x.ts": long}, want: "plugin | x.ts |  | " + unread + "it is longer than 1 MiB | true"},
		"a link in a circle":           {agent: "opencode", tree: tree{"project/.opencode/plugin/x": ""}, change: link("x.ts", "project/.opencode/plugin/x.ts"), want: "plugin | x.ts |  | " + unread + "EvalSymlinks: too many links | true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tt.tree.write(t)
			if tt.change != nil {
				tt.change(t, dir)
			}
			if got := rows(cmp.Or(tt.agent, "claude-code"), dir, nil); !slices.Contains(got, tt.want) {
				t.Errorf("%s, want %s", strings.Join(got, "\n"), tt.want)
			}
		})
	}
}

// TestOthers: plugins, extensions and managed hooks of the other agents are found by their files.
func TestOthers(t *testing.T) {
	t.Parallel()

	own := string(pluginfile.File(agents.Lookup("opencode"), "/run/s.sock", "/bin/grapnel", "mcp"))
	for name, tt := range map[string]struct {
		agent string
		tree  tree
		want  []string
	}{
		"opencode": {"opencode", tree{
			"home/.config/opencode/plugins/grapnel.ts": own, "home/.config/opencode/plugins/z.ts": `export default () => ({"tool.execute.after": f})`,
			"project/.opencode/plugin/grapnel.ts": own + "\nmore", "project/.opencode/plugin/w.js": "export * from 'w'", "project/opencode.jsonc": `{"plugin": ["w@1", ["v", {}], 7]} // x`,
		}, []string{
			"plugin | grapnel.ts | chat.message experimental.chat.messages.transform experimental.chat.system.transform experimental.session.compacting tool.execute.after tool.execute.before | change arguments that Grapnel judged; change results that Grapnel judged; change what the model reads | true",
			"plugin | v |  | " + unread + "it is a package | true",
			"plugin | w.js |  | " + unread + "it names no event itself | true",
			"plugin | w@1 |  | " + unread + "it is a package | true",
			"plugin | z.ts | tool.execute.after | change results that Grapnel judged | true",
		}},
		"amp":    {"amp", tree{"project/.amp/plugins/x.ts": `amp.on("tool.call", f)`}, []string{"plugin | x.ts | tool.call | answer or change calls that Grapnel judged | true"}},
		"gemini": {"gemini", tree{"home/.gemini/extensions/e/hooks/hooks.json": `{"hooks":{"BeforeTool":[],"Notification":[],"x":1}}`}, []string{"extension | e | BeforeTool Notification | change arguments that Grapnel judged | false"}},
		"codex": {"codex", tree{
			"root/etc/codex/requirements.toml":                      "allow_managed_hooks_only = true\n[hooks]\nmanaged_dir = '/x'\n[[hooks.PreToolUse]]\nmatcher = '*'\n",
			"home/.codex/plugins/cache/mk/p/1.0.0/hooks/hooks.json": `{"hooks":{"PostToolUse":[]}}`,
		}, []string{
			"managed hooks | requirements.toml | PreToolUse | change arguments that Grapnel judged | false",
			"plugin | 1.0.0 | PostToolUse | change results that Grapnel judged | false",
			"setting | allow_managed_hooks_only |  | " + silent + " | true",
		}},
		"cursor":           {"cursor", tree{"root/etc/cursor/hooks.json": `{"version":1,"hooks":{"preToolUse":[{"command":"x"}]}}`}, []string{"managed hooks | hooks.json | preToolUse | answer before Grapnel: their answer is taken where two differ | true"}},
		"copilot":          {"copilot", tree{"home/.copilot/hooks/x.json": `{"hooks":{"PreToolUse":[]}}`}, []string{}},
		"another system's": {"cursor", tree{"project/C:/ProgramData/Cursor/hooks.json": `{"hooks":{"preToolUse":[]}}`}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := gocmp.Diff(tt.want, rows(tt.agent, tt.tree.write(t), nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzNamed: no text of a module fails, and what is named has the form of an event.
func FuzzNamed(f *testing.F) {
	powers := agents.Lookup("claude-code").Above[1].Powers
	for _, text := range []string{`on("tool.check")`, `"\x`, "'\\u{110000}'", "`*`", "('*')", "'!a.b'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, event := range named(powers, plain(text)) {
			if strings.Trim(event, "!*.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
				t.Errorf("%q of %q", event, text)
			}
		}
	})
}
