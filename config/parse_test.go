package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "rewrite expected errors in testdata")

// section11 is the example of the specification.
const section11 = `version: 1
budgets:
  turn: {time: 10s, chars: 64000}
  phases:
    turn.pre_prompt_compile: {time: 800ms, require: [agentsdoc.prompt]}
plugins:
  - name: agentsdoc
    builtin: agentsdoc            # or: command: ./bin/agentsdoc, args: […], sha256: …
    grants:
      contribute: [prompt_section, reminder]
      sections: [agents_md]
      domains: [thread_agents_doc]
      host: [documents, state]
      read: ['*']
    env: {pass: [HOME], set: {LANG: C.UTF-8}}
    limits: {memory: 256MiB, concurrency: 32, frame: 4MiB, start: 10s, tool: 90s, recycle: {age: 1h, calls: 10000}}
    subscriptions:
      agentsdoc.prompt: {priority: 600, timeout: 500ms, on_failure: fail_closed, budget: {chars: 16000}, when: 'turn.mode != "system"'}
    config: {preset: default}
store: sqlite:./grapnel.db
manifest: {keep_text: false}
`

// loader returns a loader with a fixed environment.
func loader(env map[string]string) Loader {
	return Loader{LookupEnv: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}}
}

// parse parses text that must be fine.
func parse(t *testing.T, text string) *Config {
	t.Helper()

	c, err := loader(map[string]string{"TOKEN": "s3cret"}).Parse([]byte(text), "grapnel.yaml")
	if err != nil {
		t.Fatalf("Parse: %v\nof:\n%s", err, text)
	}
	return c
}

// parseError parses text that must be wrong, and returns the rendered error.
func parseError(t *testing.T, text string) string {
	t.Helper()

	c, err := loader(map[string]string{"TOKEN": "s3cret", "BAD": "\xff", "EMPTY": "", "DSN": "mysql:s3cret"}).Parse([]byte(text), "grapnel.yaml")
	if err == nil {
		t.Fatalf("no error for:\n%s", text)
	}
	if c != nil {
		t.Error("an error and a configuration")
	}
	return err.Error()
}

// ignoring leaves out what a test does not compare.
func ignoring() cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool {
		last := p.Last().String()
		return last == ".source" || last == ".redacted" || last == ".secrets"
	}, cmp.Ignore())
}

// TestParseEveryKey decodes the template with all of its suggestions in use, so
// that every key is decoded once.
func TestParseEveryKey(t *testing.T) {
	t.Parallel()

	c := parse(t, templateInUse())
	sub := c.Plugins[0].Subscriptions["agentsdoc.prompt"]
	want := phases.Override{
		Enabled: new(true), Phase: new(phases.PrePromptCompile), Kinds: []phases.Kind{phases.KindPromptSection}, Role: new(phases.RoleContribute),
		Priority: new(600), After: &[]string{}, Before: &[]string{"memory.recall?"}, When: new(`turn.mode != "system"`),
		Timeout:   new(phases.Duration(500 * time.Millisecond)),
		OnFailure: &phases.OnFailure{Default: phases.BestEffort, ByCause: map[phases.Cause]phases.FailureWord{phases.CauseTimeout: phases.UseInstead}},
		Fallback:  phases.Contributions{&phases.PromptSection{SectionID: "agents_md", Content: "No instructions could be read."}},
		Retry:     &phases.Retry{Attempts: 2, Backoff: phases.Duration(50 * time.Millisecond)},
		Budget:    &phases.TextBudget{Chars: 16000, Tokens: 4000},
		Cache:     &phases.Cache{TTL: phases.Duration(5 * time.Minute), Vary: []string{"dir"}, Tags: []string{"files"}},
		Shadow:    new(false), Visibility: new(phases.VisibilityInternal), WithoutNeeds: new(phases.TurnOff),
	}
	if diff := cmp.Diff(sub, want); diff != "" {
		t.Errorf("subscription (-got +want):\n%s", diff)
	}
	model := ModelBudget{Calls: DefaultModelCalls, OutputTokens: DefaultModelOutputTokens, Time: phases.Duration(DefaultModelTime)}
	if diff := cmp.Diff(c.Plugins[0].Limits.Model, model); diff != "" {
		t.Errorf("the model's budget, which shows the defaults (-got +want):\n%s", diff)
	}
	serve := Serve{
		Roots: []string{"/srv/work"}, Hosts: []string{"agents.example.org"}, Origins: []string{"https://agents.example.org"}, TurnIdle: phases.Duration(10 * time.Minute), Turns: 1024, Watch: true,
		Conversations: Conversations{Workspaces: []string{"shop"}, ContextTokens: 128_000, ReserveTokens: 16_000, MaxEntries: 200},
	}
	if diff := cmp.Diff(c.Serve, serve); diff != "" {
		t.Errorf("serve (-got +want):\n%s", diff)
	}
	if c.Pin != "required" || c.Manifest.FingerprintKey.Value != "key" || c.Manifest.ChainKey.Value != "chain" || c.Plugins[1].UnsafePath || len(c.Plugins[1].Pins) != 1 {
		t.Errorf("got %+v", c)
	}
}

// templateInUse is the template without the signs that keep its suggestions out.
func templateInUse() string {
	text := strings.ReplaceAll(string(Template()), "#:", "")
	return strings.NewReplacer("${GRAPNEL_FINGERPRINT_KEY}", "key", "${GRAPNEL_CHAIN_KEY}", "chain").Replace(text)
}

// TestMistakes compares the rendered errors of testdata/mistakes: each archive
// has pairs NAME.yaml and NAME.err.
func TestMistakes(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()

			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, f := range archive.Files {
				want[f.Name] = string(f.Data)
			}
			var rewritten []txtar.File
			for _, f := range archive.Files {
				name, isInput := strings.CutSuffix(f.Name, ".yaml")
				if !isInput {
					continue
				}
				got := parseError(t, string(f.Data)) + "\n"
				if diff := cmp.Diff(got, want[name+".err"]); diff != "" && !*update {
					t.Errorf("%s (-got +want):\n%s", name, diff)
				}
				rewritten = append(rewritten, f, txtar.File{Name: name + ".err", Data: []byte(got)})
			}
			if *update {
				archive.Files = rewritten
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestMistakesInBytes has files that a text archive cannot hold.
func TestMistakesInBytes(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, text, want string }{
		{"empty", "", "grapnel.yaml:1:1: the file is empty; it begins with version: 1\n | \n | ^"},
		{"comment only", "# nothing\n", "grapnel.yaml:1:1: the file is empty; it begins with version: 1\n | # nothing\n | ^"},
		{"null", "~", "grapnel.yaml:1:1: the file is empty; it begins with version: 1\n | ~\n | ^"},
		{"header only", "---\n", "grapnel.yaml:1:1: the file is empty; it begins with version: 1\n | ---\n | ^"},
		{"not UTF-8", "version: 1\nstore: \"é\xff\"\n", "grapnel.yaml:2:10: the file is not UTF-8\n | store: \"é\uFFFD\"\n |          ^"},
		{"NUL", "version: 1\x00\n", "grapnel.yaml:1:11: control character U+0000\n | version: 1\uFFFD\n |           ^"},
		{"escape sequence", "a: \x1b[2J\n", "grapnel.yaml:1:4: control character U+001B\n | a: \uFFFD[2J\n |    ^"},
		{"carriage returns", "version: 1\r\nstroe: x\r\n", "grapnel.yaml:2:1: unknown key \"stroe\" (did you mean \"store\"?)\n | stroe: x\n | ^"},
		{"byte order mark", "\uFEFFversion: 2\n", "grapnel.yaml:1:10: 2 is out of range; it is 1\n | version: 2\n |          ^"},
		{"too large", "version: 1\n#" + strings.Repeat("x", maxFile), "grapnel.yaml: the file is larger than 1 MiB"},
		{"tab in the line", "version: 1\nstore:\tftp:x\n", "grapnel.yaml:2:8: a store is sqlite:PATH or postgres://…\n | store: ftp:x\n |        ^"},
		{"wide text before", "version: 1\nmanifest: {labels: 'ü語', pin: x}\n", "grapnel.yaml:2:20: unknown word \"ü語\"; known are full, hash\n | manifest: {labels: 'ü語', pin: x}\n |                    ^\n" +
			"grapnel.yaml:2:26: unknown key \"pin\"; known are keep_text, keep_inputs, fingerprint_key, chain_key, labels, on_failure, retention\n | manifest: {labels: 'ü語', pin: x}\n |                          ^"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(parseError(t, tt.text), tt.want); diff != "" {
				t.Errorf("error (-got +want):\n%s", diff)
			}
		})
	}
}
