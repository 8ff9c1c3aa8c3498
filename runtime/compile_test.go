package runtime_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// whole is a plugin that takes part in every phase of a compiled turn.
func whole() *sdk.Plugin {
	return plugin("p",
		on("policy", phases.PrePolicy, reply(policyOf("a", "1")), phases.KindPolicy),
		on("recall", phases.PrePromptContext, reply(contextOf("c", "a remembered fact")), phases.KindPromptContext),
		on("planned", phases.PostPreflight, reply(contextOf("d", "a planned fact")), phases.KindPromptContext),
		on("tools", phases.PreTools, reply(bundle("weather")), phases.KindToolBundle),
		section("rules", "house_rules", "Be brief."),
		on("check", phases.PostPromptCompile, reply(allow()), phases.KindDecision),
	)
}

// compile runs a whole turn.
func compile(t testing.TB, eng *runtime.Engine, in runtime.CompileInput) (*runtime.Compiled, error) {
	t.Helper()
	done, err := eng.CompileTurn(t.Context(), host(), in)
	if done == nil || done.Manifest == nil {
		t.Fatalf("CompileTurn = %v, %v", done, err)
	}
	return done, err
}

func TestCompileTurn(t *testing.T) {
	t.Parallel()

	eng := newHosted(whole()).start(t)
	done := prompted(t)(compile(t, eng, runtime.CompileInput{UserText: "hello", ToolCalling: true, RecallPlan: raw("{}")}))
	for _, want := range []string{"a remembered fact", "a planned fact", "Be brief."} {
		if !strings.Contains(done.Prompt.FullText, want) {
			t.Errorf("%q is not in the prompt:\n%s", want, done.Prompt.FullText)
		}
	}
	if len(done.Tools) != 1 || done.Tools[0].Name != "weather" {
		t.Errorf("tools = %+v", done.Tools)
	}
	want := []string{
		"p.policy succeeded", "p.recall succeeded", "p.planned succeeded", "p.tools succeeded", "p.rules succeeded", "p.check succeeded",
	}
	checkSame(t, "ledger", rowsOf(done.Manifest.Runs), want)
	m := done.Manifest
	if m.ManifestID == "" || m.TurnID != "1" || len(m.Plugins) != 1 || len(m.Policies) != 1 || len(m.HookSources) != 6 {
		t.Errorf("manifest = %+v", m)
	}
}

// TestEqualTurns: equal turns give equal content, and only that: each has an id
// of its own.
func TestEqualTurns(t *testing.T) {
	t.Parallel()

	eng := newHosted(whole()).start(t)
	where := host()
	where.Now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	var hashes, ids []string
	for i := range 3 {
		in := runtime.CompileInput{UserText: "hello"}
		if i == 2 {
			in.ToolCalling, in.Facts = true, compiler.Facts{Date: "2026-05-05"}
		}
		done := prompted(t)(eng.CompileTurn(t.Context(), where, in))
		hashes, ids = append(hashes, done.Manifest.ContentHash), append(ids, done.Manifest.ManifestID)
	}
	if hashes[0] == "" || hashes[0] != hashes[1] || hashes[0] == hashes[2] {
		t.Errorf("content hashes %q", hashes)
	}
	if ids[0] == ids[1] {
		t.Errorf("two turns have the id %s", ids[0])
	}
}

// TestBlocked: a deny or an ask ends the turn without a prompt and with the
// ledger; a failed phase likewise.
func TestBlocked(t *testing.T) {
	t.Parallel()

	guard := func(phase phases.Phase, h handler) *sdk.Plugin {
		p := whole()
		p.Hooks = append(p.Hooks, on("guard", phase, h, phases.KindDecision))
		return p
	}
	tests := []struct {
		name   string
		plugin *sdk.Plugin
		code   string
		last   string
	}{
		{"deny before", guard(phases.PrePolicy, reply(deny("not today"))), "denied", "p.check cancelled phase_failed"},
		{"ask before", guard(phases.PrePolicy, reply(ask("sure?"))), "ask", "p.check cancelled phase_failed"},
		{"failed closed before", guard(phases.PrePolicy, failing(sdk.Fail("x", "x"))), "plugin_error", "p.check cancelled phase_failed"},
		{"deny after", guard(phases.PostPromptCompile, reply(deny("not that"))), "denied", "p.guard denied denied"},
		{"ask after", guard(phases.PostPromptCompile, reply(ask("sure?"))), "ask", "p.guard succeeded"},
		{"failed closed after", guard(phases.PostPromptCompile, failing(sdk.Fail("x", "x"))), "plugin_error", "p.guard failed plugin_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			done, err := compile(t, newHosted(tt.plugin).start(t), runtime.CompileInput{})
			if string(phases.CodeOf(err)) != tt.code || done.Error == nil || string(done.Error.Code) != tt.code {
				t.Errorf("error = %v, %+v", err, done.Error)
			}
			if done.Prompt != nil {
				t.Error("a blocked turn has a prompt")
			}
			if done.Error.Subscription != "p.guard" {
				t.Errorf("blocked by %q", done.Error.Subscription)
			}
			if runs := rowsOf(done.Manifest.Runs); len(runs) == 0 || runs[len(runs)-1] != tt.last {
				t.Errorf("ledger = %v, the last is not %q", runs, tt.last)
			}
			if done.Manifest.ContentHash == "" {
				t.Error("the manifest of a blocked turn is not sealed")
			}
		})
	}
}

// TestPostPromptCompile: the judge of the prompt has the manifest, and its text
// only by grant.
func TestPostPromptCompile(t *testing.T) {
	t.Parallel()

	for name, see := range map[string][]string{"with the text": {"manifest", "prompt_text"}, "without": {"manifest"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			seen := make(chan *phases.PostPromptCompileInput, 1)
			judge := plugin("judge", sdk.Hook{Name: "h", PostPromptCompile: func(_ context.Context, _ *sdk.Call, in *phases.PostPromptCompileInput) ([]phases.Contribution, error) {
				seen <- in
				return nil, nil
			}})
			h := newHosted(whole(), judge)
			h.plugin("judge").Grants.See = see
			done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
			in, want := <-seen, phases.Text{Withheld: true, Chars: len([]rune(done.Prompt.FullText))}
			if len(see) > 1 {
				want = phases.T(done.Prompt.FullText)
			}
			checkSame(t, "prompt text", in.PromptText, want)
			if !strings.Contains(string(in.Manifest), `"house_rules"`) {
				t.Errorf("the manifest: %s", in.Manifest)
			}
		})
	}
}

// writePersona puts files into a persona directory.
func writePersona(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// withPersona is an engine with a persona directory.
func withPersona(dir string) *hosted {
	h := newHosted()
	h.opts.PersonaDir = dir
	return h
}

// remarks lists the diagnostics of a manifest: "code section" each.
func remarks(m *manifest.Manifest) []string {
	list := []string{}
	for _, d := range m.Diagnostics {
		list = append(list, strings.TrimSpace(d.Code+" "+d.SectionID))
	}
	return list
}

func file(name, status string, chars int) manifest.File {
	return manifest.File{Path: name, Status: status, Chars: chars}
}

// TestPersona: the texts stand in their sections, and the manifest says how much of
// each file.
func TestPersona(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		files   map[string]string
		prompt  runtime.CompileInput
		rows    []manifest.File
		remarks []string
		has     []string
	}{
		{
			name:    "all three",
			files:   map[string]string{"SOUL.md": "Curious.\n", "IDENTITY.md": "\ufeffI am\r\nProbe.", "USER.md": "Likes tea."},
			rows:    []manifest.File{file("SOUL.md", "loaded", 8), file("IDENTITY.md", "loaded", 11), file("USER.md", "loaded", 10)},
			remarks: []string{},
			has: []string{
				"## Soul Core\n\nCurious.\n\n(This is your file SOUL.md.", "## Identity Core\n\nI am\nProbe.\n\n(This is your file IDENTITY.md.",
				"## User Persona\n\nLikes tea.\n\n",
			},
		},
		{
			name:    "an empty directory",
			rows:    []manifest.File{file("SOUL.md", "missing", 0), file("IDENTITY.md", "missing", 0), file("USER.md", "missing", 0)},
			remarks: []string{"missing_file", "missing_file"},
		},
		{
			name:    "the host's own text wins, and its file does not count; an empty one, and no user",
			files:   map[string]string{"SOUL.md": "of the file\x00", "IDENTITY.md": ""},
			prompt:  runtime.CompileInput{Host: compiler.HostTexts{SoulCore: "of the host"}},
			rows:    []manifest.File{file("IDENTITY.md", "loaded", 0), file("USER.md", "missing", 0)},
			remarks: []string{},
			has:     []string{"of the host"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			eng := withPersona(writePersona(t, t.TempDir(), tt.files)).start(t)
			done := prompted(t)(eng.CompileTurn(t.Context(), host(), tt.prompt))
			checkSame(t, "files", done.Manifest.Files, tt.rows)
			checkSame(t, "diagnostics", remarks(done.Manifest), tt.remarks)
			if len(done.Diagnostics) != len(tt.remarks) {
				t.Errorf("the turn was told %v", done.Diagnostics)
			}
			for _, want := range tt.has {
				if !strings.Contains(done.Prompt.FullText, want) {
					t.Errorf("%q is not in the prompt:\n%s", want, done.Prompt.FullText)
				}
			}
			if n := strings.Count(done.Prompt.FullText, compiler.Boundary); n != 1 {
				t.Errorf("%d boundaries", n)
			}
		})
	}
}

// TestSeedPersona: New prepares the directory where that is wanted, and fails if it
// cannot.
func TestSeedPersona(t *testing.T) {
	t.Parallel()

	h := withPersona(filepath.Join(t.TempDir(), "new", "home"))
	h.opts.SeedPersona = true
	done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
	var statuses []string
	for _, f := range done.Manifest.Files {
		statuses = append(statuses, f.Status)
	}
	if diff := cmp.Diff(statuses, []string{"loaded", "loaded", "missing"}); diff != "" || len(done.Diagnostics) != 0 {
		t.Errorf("files (-got +want):\n%s\ndiagnostics: %v", diff, done.Diagnostics)
	}

	dir := writePersona(t, t.TempDir(), map[string]string{"file": ""})
	for place, want := range map[string]string{"": "the option SeedPersona needs a PersonaDir", filepath.Join(dir, "file"): "persona directory: "} {
		h := withPersona(place)
		h.opts.SeedPersona = true
		if eng, err := runtime.New(t.Context(), &h.cfg, h.opts); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New with the directory %q = %v, %v, want %q", place, eng, err, want)
		}
	}
}

// TestRelativePersona: a persona directory stays where it was when the engine was made.
func TestRelativePersona(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("home", 0o700); err != nil {
		t.Fatal(err)
	}
	writePersona(t, "home", map[string]string{"SOUL.md": "calm"})
	eng := withPersona("home").start(t)
	t.Chdir(t.TempDir())
	done := prompted(t)(compile(t, eng, runtime.CompileInput{}))
	if done.Manifest.Files[0] != file("SOUL.md", "loaded", 4) {
		t.Errorf("files = %v", done.Manifest.Files)
	}
}
