//go:build unix

package commandhooks

import (
	"os"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestOutcomes: what comes of what real scripts do is what the agent's contract says, or a failure.
func TestOutcomes(t *testing.T) {
	t.Parallel()

	table, err := os.ReadFile("testdata/outcomes.txt")
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]phases.Input{
		"call": bash("ls"), "result x": ran("x"), "result key": ran("key"), "prompt": said("hi"), "start": &phases.SessionStartInput{}, "compact": &phases.PreCompactionInput{},
		"stop 0": finished("done", 0), "stop 1": finished("done", 1), "stop 5": finished("done", 5),
	}
	rows := strings.Split(string(table), "\n")
	for i, row := range rows {
		head, script, ok := strings.Cut(row, ": ")
		if !ok || strings.HasPrefix(row, "#") || strings.HasPrefix(row, "\t") {
			continue
		}
		want, _ := strings.CutPrefix(rows[i+1], "\t") // nothing comes of it where the next line is another row
		if want == rows[i+1] {
			want = ""
		}
		t.Run(row, func(t *testing.T) {
			t.Parallel()

			head, rewrites := strings.CutSuffix(head, " rewrites")
			head, asHost := strings.CutSuffix(head, " as_host")
			format, rest, _ := strings.Cut(head, " ")
			event, input, _ := strings.Cut(rest, " ")
			if strings.Contains(script, "say ") {
				script = `say() { printf '{"hookSpecificOutput":{"hookEventName":"` + event + `",%s}}\n' "$1"; }; ` + script
			}
			cfg := map[string]any{"as_host": asHost}
			if rewrites {
				cfg["rewrites"] = true
			}
			if got := newProject(t, format, one(t, format, event, script, nil), cfg).shown(t, inputs[input]); strings.ReplaceAll(got, "\n", `\n`) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
