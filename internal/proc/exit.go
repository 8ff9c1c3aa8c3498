package proc

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Exit is how a plugin process ended.
type Exit struct {
	// Code is the exit status, or -1 after a signal.
	Code int
	// Signal is what killed it, or 0.
	Signal syscall.Signal
	// OOM says that it ended for memory: killed for it here or by the system, or
	// refused it. What the system did without a control group is a guess.
	OOM bool
	// Held is the memory that it, and if measured its descendants, held then or
	// not long before, and Limit what they may hold; each is 0 if that is not
	// known.
	Held, Limit int64
	// Asked says that the end was our doing: Stop or Kill came first.
	Asked bool
	// At is the host's time at which the end was noticed.
	At time.Time
	// Stderr is the end of what the plugin wrote to stderr (64 KiB at most),
	// as cleaned lines.
	Stderr []string
}

// String describes the end in a few words.
func (e Exit) String() string {
	switch {
	case e.OOM:
		return e.memoryWords()
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}

// Err returns the end as a failure: crash or oom, with the exit status, and with
// the plugin's last words as its detail. It is also an error if the process ended with status 0, because
// a plugin never ends by itself.
func (e Exit) Err(plugin string) *phases.Error {
	code := phases.CauseCrash
	if e.OOM {
		code = phases.CauseOOM
	}
	err := phases.Errorf(code, "plugin %s %s", plugin, e)
	err.Retryable, err.Detail = true, lastWords(e.Stderr)
	return err
}

// lastWords quotes the lines of stderr that tell most: the panic of a Go
// program, otherwise the last three.
func lastWords(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	from := max(0, len(lines)-3)
	for i, line := range lines {
		if isDeath(line) {
			from = i
		}
	}
	lines = lines[from:min(len(lines), from+3)]
	return fmt.Sprintf("stderr: %q", cut(strings.Join(lines, " | "), 500))
}

// exitOf reads a process state.
func exitOf(state *os.ProcessState, at time.Time) Exit {
	e := Exit{Code: -1, At: at}
	if state == nil {
		return e
	}
	e.Code = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal()
	}
	return e
}
