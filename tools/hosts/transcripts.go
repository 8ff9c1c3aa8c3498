package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// talk is a conversation of which the agent's transcript is kept. Its check is not judged.
type talk struct {
	check

	hooked  bool     // behind what grapnel install writes
	args    []string // texts in the agent's arguments, and what stands there instead
	prompts []string // of runs that go on with the session
}

// talks are what transcripts are made of: work, what the agent's own rules refuse, and what a hook of ours refuses.
func talks(a *agent, dir string) []talk {
	env := filepath.Join(dir, ".env")
	open := map[string]call{ // the agent's tool that reads a file; Codex has none
		"claude-code": {"Read", map[string]any{"file_path": env}}, "gemini": {"read_file", map[string]any{"file_path": env}},
		"opencode": {"read", map[string]any{"filePath": env}}, "copilot": {"view", map[string]any{"path": env}},
		"codex": shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: notes.md\n+one\n*** End Patch\nEOF"),
	}
	work := check{
		server: true, subanswers: [][]call{{shell("cat .env")}},
		answers: [][]call{{shell("cat .env")}, {shell("ls missing"), shell("echo second"), open[a.name]}, {{tool: serverTool}}, {{tool: subagentTool}}},
	}
	rules := check{answers: [][]call{{shell("cat .env")}, {shell("touch asked")}}, files: map[string]string{
		".claude/settings.json": `{"permissions": {"deny": ["Bash(cat:*)"], "ask": ["Bash(touch:*)"]}}`,
		"opencode.json":         `{"permission": {"bash": {"cat *": "deny", "touch *": "ask"}}}`,
	}}
	instead := []string{"danger-full-access", "read-only", "yolo", "default", "--allow-all-tools", "--deny-tool=shell(cat)"}
	short := []string{"--skip-git-repo-check", "--skip-git-repo-check\x00-c\x00model_auto_compact_token_limit=90"}
	return []talk{
		{check: check{}, args: short, prompts: []string{"Go on."}},
		{check: work, prompts: []string{"Go on.", "/" + cmp.Or(map[string]string{"gemini": "compress"}[a.name], "compact")}},
		{check: rules, args: instead},
		{check: check{guard: files + others, answers: [][]call{{shell("cat .env")}}}, hooked: true},
	}
}

// writeTranscripts has each agent keep its talks in one home, and writes its transcripts to dir as if it were Ada's home.
func (l *lab) writeTranscripts(ctx context.Context, list []agent, dir string) error {
	for i := range list {
		a := &list[i]
		home, err := os.MkdirTemp("", "home") // outside of any repository
		if err := errors.Join(err, l.get(ctx, a)); err != nil {
			return err
		}
		for _, k := range talks(a, filepath.Join(home, "src", "app")) {
			k.does = "src/app"
			err = errors.Join(err, l.talk(ctx, a, &k, home))
		}
		err = errors.Join(err, l.keepTranscripts(ctx, a, home, dir), os.RemoveAll(home))
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// talk has one conversation.
func (l *lab) talk(ctx context.Context, a *agent, k *talk, home string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	t, err := l.newTrial(a, &k.check, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end(context.WithoutCancel(ctx))) }()
	t.model = newModel(t.script(ctx))
	defer t.model.server.Close()
	if k.hooked {
		return t.run(ctx)
	}
	args, env, err := a.prepare(t, nil)
	if err != nil {
		return err
	}
	args = strings.Split(strings.NewReplacer(k.args...).Replace(strings.Join(args, "\x00")), "\x00")
	err = t.converse(ctx, args, env)
	at := slices.Index(args, t.prompt())
	for _, args[at] = range k.prompts {
		err = cmp.Or(err, t.converse(ctx, slices.Insert(slices.Clone(args), at-len(a.asks), a.goOn...), env))
	}
	return err
}

// keepTranscripts writes what an agent has in a home to dir, without what is of this machine. What is long is cut.
func (l *lab) keepTranscripts(ctx context.Context, a *agent, home, dir string) error {
	host, _ := os.Hostname() // is in no text if it has no name
	slug := strings.NewReplacer("/", "-", "_", "-", ".", "-")
	names := strings.NewReplacer(home, "/ada", home[1:], "ada", slug.Replace(home), "-ada", l.root, "/opt/grapnel", cmp.Or(host, "localhost"), "laptop")
	runs := regexp.MustCompile(regexp.QuoteMeta(filepath.Join(os.TempDir(), "agents")) + `\d+`)
	keep := func(path string, text []byte) error {
		var out bytes.Buffer
		d, e := jsontext.NewDecoder(strings.NewReader(runs.ReplaceAllString(names.Replace(string(text)), "/run/user/1000"))), jsontext.NewEncoder(&out)
		var err error
		for ; err == nil; err = cut(d, e) { // one value after another
		}
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", path, err)
		}
		return writeFile(filepath.Join(dir, names.Replace(path)), out.Bytes())
	}
	if a.name == "opencode" {
		return l.keepOpencode(ctx, a, home, keep)
	}
	return filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(home, path) // it is below
		if err != nil || d.IsDir() || !regexp.MustCompile(`^\.(claude/projects|codex/sessions|gemini/tmp|gemini/projects\.json|copilot/session-state)`).MatchString(rel) {
			return err
		}
		text, err := os.ReadFile(path)
		switch {
		case filepath.Ext(path) == ".jsonl" || filepath.Base(path) == "projects.json":
			return errors.Join(err, keep(rel, text))
		case filepath.Base(path) == ".project_root":
			return errors.Join(err, writeFile(filepath.Join(dir, rel), []byte(names.Replace(string(text)))))
		}
		return err
	})
}

// keepOpencode keeps the rows of a database: its tables in one JSON value each.
func (l *lab) keepOpencode(ctx context.Context, a *agent, home string, keep func(path string, text []byte) error) error {
	var all []byte
	for _, query := range []string{
		"select sql from sqlite_master where name in ('session', 'message', 'part')", "select * from session", "select * from message", "select * from part",
	} {
		cmd := a.start(ctx, home, []string{"db", query, "--format", "json"}, append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+filepath.Join(home, "data")))
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		all = append(all, out...)
	}
	return keep(".local/share/opencode/opencode.db.json", all)
}

// bulky are members that say nothing of a conversation.
var bulky = regexp.MustCompile(`^(tools|shape|params|rendered|systemPrompt|base_instructions|addedLines|usage|rate_limits|toolTelemetry|accountingSnapshot|permissionSuggestions)$`)

// cut copies a value, without bulky members and what is behind the beginning of long texts and lists.
func cut(d *jsontext.Decoder, e *jsontext.Encoder) error {
	const mostText, mostList = 240, 4
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	kind := token.Kind()
	if text := token.String(); kind == '"' && len(text) > mostText && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "CREATE ") {
		token = jsontext.String(strings.ToValidUTF8(text[:mostText/4], "") + "…")
	}
	name := token.String() // if it is one
	if err := e.WriteToken(token); err != nil || kind != '{' && kind != '[' {
		if of, n := e.StackIndex(e.StackDepth()); err == nil && of == '{' && n%2 == 1 && bulky.MatchString(name) {
			return errors.Join(d.SkipValue(), e.WriteToken(jsontext.Null))
		}
		return err
	}
	for n := 0; err == nil && d.PeekKind() != kind+2; n++ { // the closing one, in ASCII
		if kind == '[' && n >= mostList && d.StackDepth() > 1 {
			err = d.SkipValue()
		} else {
			err = cut(d, e)
		}
	}
	return errors.Join(err, cut(d, e))
}

// copilot is Copilot CLI with a provider of the person's own. It has no checks.
func copilot() agent {
	return agent{
		name: "copilot", pkg: "@github/copilot", version: "1.0.102", shell: "bash", server: "probe-tell", goOn: []string{"--continue"}, asks: []string{"-p"}, prepare: prepareCopilot,
		sources: map[string]source{
			"linux/amd64": {"@github/copilot-linux-x64@%s", "sha512-eGHPbsP0p2QgfVZCjtbGBFZPBOJQ0DN7xIbBRAo7oG8b1zfLirQIdfI4h8Iy68Dv2cKJGJZg2/EO7W7KpIMJOw==", "copilot"},
			"linux/arm64": {"@github/copilot-linux-arm64@%s", "sha512-5rO0B2/AduCekrE+aUzipySKZxZY2b/tVRZ8Suy8ymPFNC0Q7HQiQ8DZhxj+3RhHR8rU2Z8KOJVAbtMlROX6+A==", "copilot"},
		},
	}
}

func prepareCopilot(t *trial, _ []string) (args, env []string, err error) {
	if t.check.server {
		err = writeJSON(filepath.Join(t.home, ".copilot", "mcp-config.json"), map[string]any{"mcpServers": t.probe()})
	}
	return []string{"--allow-all-tools", "--no-color", "-p", t.prompt()}, []string{
		"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_BASE_URL=" + t.model.server.URL, "COPILOT_PROVIDER_API_KEY=fake", "COPILOT_MODEL=claude-sonnet-4.5",
	}, err
}
