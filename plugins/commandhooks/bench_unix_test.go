//go:build unix

package commandhooks

import (
	"os/exec"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// BenchmarkHook is one call of a guard: "alone" is its process, "hook" the same through the plugin, "not for it" one whose
// matcher names another tool.
func BenchmarkHook(b *testing.B) {
	for _, script := range []struct{ name, command string }{{"sh", `exit 0`}, {"python", `python3 -c 'import json,sys; json.load(sys.stdin)'`}} {
		p := newProject(b, "claude", `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"`+script.command+`"}]}]}}`, nil)
		run := func(b *testing.B, in phases.Input) {
			b.Helper()
			for b.Loop() {
				if _, err := p.dispatch(b.Context(), b, in); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(script.name+"/alone", func(b *testing.B) {
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), "bash", "-c", script.command)
				stdin, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				_, _ = stdin.Write([]byte(`{"tool_name":"Bash"}`)) // it may have ended
				_ = stdin.Close()
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(script.name+"/hook", func(b *testing.B) { run(b, bash("ls")) })
		if script.name == "sh" {
			b.Run("not for it", func(b *testing.B) { run(b, &phases.ToolPreCallInput{Tool: "Read"}) })
		}
	}
}
