package plugintest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// reader answers with the text of the file "name" below the context's folder,
// and fails with the code "absent" without it.
func reader() *sdk.Plugin {
	return plugin(func(_ context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		text, err := os.ReadFile(filepath.Join(call.Context.Dir, "name"))
		if err != nil {
			return nil, sdk.Fail("absent", "no name in "+call.Context.Dir)
		}
		s := &phases.PromptSection{SectionID: "s", Content: strings.TrimSpace(string(text)) + " in " + call.Context.Dir}
		return sdk.Reply(s)
	})
}

func TestFixtures(t *testing.T) {
	Fixtures(t, reader(), "testdata")
}

func TestFixture(t *testing.T) {
	t.Parallel()
	const good = "-- context.json --\n{\"dir\":\"$WORK/d\"}\n-- d/name --\nada\n"
	const answer = `{"contributions":[{"kind":"prompt_section","section_id":"s","content":"ada in $WORK/d"}]}`
	tests := []struct {
		name, text string
		want       []string
	}{
		{"right", good + "-- want.json --\n" + answer, nil},
		{"hook and input", good + "-- hook --\nh\n-- input.json --\n{\"tool_calling\":true}\n-- max_chars --\n5\n-- want.json --\n" + answer, nil},
		{"error that is wanted", "-- want.json --\n" + `{"error":{"code":"absent","message":"no name in "}}`, nil},
		{"wrong", good + "-- want.json --\n{}", []string{"the answer is not the one wanted (run the test with -update to take it)"}},
		{"no want", good, []string{"is not the one wanted"}},
		{"unknown hook", "-- hook --\ng\n", []string{`names no hook of the plugin: "g"`}},
		{"bad context", "-- context.json --\n{\"folder\":1}", []string{`context.json: context: json: unknown field "folder"`}},
		{"bad input", "-- input.json --\n{\"x\":1}", []string{`unknown field "x"`}},
		{"bad number", "-- max_chars --\nmany", []string{"max_chars: "}},
		{"file outside", "-- ../x --\n", []string{"../x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "f.txtar")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			rec := newRecorder(t)
			fixture(rec, reader(), path, t.TempDir(), false)
			rec.expect(t, tt.want...)
		})
	}
	rec := newRecorder(t)
	fixture(rec, reader(), "absent.txtar", t.TempDir(), false)
	rec.expect(t, "absent.txtar")
}

// TestFixtureOfATool: a fixture may call a tool; its files are their owner's alone, and replace others.
func TestFixtureOfATool(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	for _, text := range []string{"one\n", "two\n"} {
		played(t, echo(), work, false, "-- tool --\nt\n-- input.json --\n{\"a\":1}\n-- context.json --\n{\"dir\":\"/\"}\n-- want.json --\n{\"content\":{\"a\":1}}\n-- d/f --\n"+text)
		got, err := os.ReadFile(filepath.Join(work, "d", "f"))
		if err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
		if info, err := os.Stat(filepath.Join(work, "d", "f")); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	before := "why\n-- context.json --\n{\"dir\":\"$WORK\"}\n-- want.json --\n{\"error\":{\"code\":\"old\"}}\n-- name --\nada <3\n"
	want := strings.Replace(before, `{"error":{"code":"old"}}`, `{
  "contributions": [
    {
      "kind": "prompt_section",
      "section_id": "s",
      "content": "ada <3 in $WORK"
    }
  ]
}`, 1)
	after := played(t, reader(), t.TempDir(), true, before)
	if diff := cmp.Diff(after, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	played(t, reader(), t.TempDir(), false, after)
}

// played runs a fixture that is right, and returns its text afterwards.
func played(t *testing.T, p *sdk.Plugin, work string, update bool, text string) (after string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.txtar")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rec := newRecorder(t)
	fixture(rec, p, path, work, update)
	rec.expect(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
