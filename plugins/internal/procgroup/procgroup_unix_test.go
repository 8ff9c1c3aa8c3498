//go:build unix

package procgroup_test

import (
	"io"
	"os/exec"
	"testing"

	"github.com/grapnelhq/grapnel/plugins/internal/procgroup"
)

// TestEnds: a child that holds the output of its parent ends with it.
func TestEnds(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(*exec.Cmd) error{"end": procgroup.End, "kill": procgroup.Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & echo started; wait")
			procgroup.Own(cmd)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			if err := end(cmd); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadAll(out); err != nil { // it ends when the child has
				t.Error(err)
			}
			_ = cmd.Wait() // the signal is its error
		})
	}
}
