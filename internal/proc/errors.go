package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// IsResource reports whether a start failed because the host ran out of something. ETXTBSY: another thread has just written the
// program, or forked in between. EBADF: a descriptor number beyond the limit.
func IsResource(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.ETXTBSY, syscall.EBADF,
	}, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// resourceOr wraps a system error as unavailable if the host ran out of something, else under code. format ends in %w.
func resourceOr(code phases.Cause, err error, format string, args ...any) *phases.Error {
	if IsResource(err) {
		code = phases.CauseUnavailable
	}
	e := phases.Errorf(code, format, append(args, err)...)
	e.Retryable = code == phases.CauseUnavailable
	return e
}

// execError explains why the system refused to execute a readable program.
func execError(path, hint string, err error) *phases.Error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		if hint == "" {
			hint = "it is not a program for this machine, or a script without a #! line"
		}
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: %s: %w", path, hint, err)
	case errors.Is(err, fs.ErrNotExist):
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: its interpreter or loader is absent: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return phases.Errorf(phases.CauseExecFailed, "%s cannot be executed: not executable, or on a file system mounted without execution: %w", path, err)
	}
	return resourceOr(phases.CauseExecFailed, err, "%s cannot be executed: %w", path)
}

// Exit is how a plugin process ended.
type Exit struct {
	Code   int            // the exit status, or -1 after a signal
	Signal syscall.Signal // what killed it, or 0
	// OOM says that it was killed for memory here or by the system, or refused memory. Without a control group
	// the system's part is a guess.
	OOM bool
	// Held is the memory that it (and if measured its descendants) last held, and Limit the bound; 0 is unknown.
	Held, Limit int64
	Asked       bool      // Asked says that Stop or Kill came first
	At          time.Time // when the host noticed the end
	Stderr      []string  // the end of what the plugin wrote to stderr (64 KiB at most), as cleaned lines
}

func (e Exit) String() string {
	switch {
	case e.OOM:
		return e.memoryWords()
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}

// Err returns the end as a crash or oom error with the plugin's last words as its detail. Exit status 0 is an
// error too: a plugin never ends by itself.
func (e Exit) Err(plugin string) *phases.Error {
	code := phases.CauseCrash
	if e.OOM {
		code = phases.CauseOOM
	}
	err := phases.Errorf(code, "plugin %s %s", plugin, e)
	err.Retryable, err.Detail = true, lastWords(e.Stderr)
	return err
}

// traceLines is how far from the end of its output the reason of a program's death may stand: behind it come the
// lines of its trace.
const traceLines = 60

// reason finds the line with which an interpreter says why it ends: "TypeError: …", "Error [ERR_X]: …",
// "java.lang.Y: …", "file.rb:1:in …: … (LoadError)" and the like.
var reason = lazyregexp.New(`^(?:Uncaught |Caused by: |Exception in thread "[^"]*" )?(?:[\w$]+[./])*(?:[A-Z]\w*)?(?:Error|Exception|Interrupt)(?: \[\w+\])?(?::|$)` +
	`|^\S+:\d+:.*\((?:\w+::)*[A-Z]\w*(?:Error|Exception)\)$` +
	`|^(?:PHP )?Fatal error: |^error: |^thread '.*panicked at `)

// lastWords repeats a Go program's panic or the line in which an interpreter gives the reason, with the lines that
// explain it, or else the last three lines.
func lastWords(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	at := len(lines) - 1
	for i, line := range lines {
		if isDeath(line) || i >= len(lines)-traceLines && reason().MatchString(line) {
			at = i
		}
	}
	from, to := at, min(at+3, len(lines))
	if strings.HasPrefix(lines[at], "SyntaxError") { // the place stands before it
		from, to = at-3, at+1
	}
	quoted := slices.Clone(lines[max(0, min(from, to-3)):to])
	for i := range quoted[:len(quoted)-to+at] { // whatever is long, the reason is in it
		quoted[i] = cut(quoted[i], 120)
	}
	return "stderr: " + cut(strings.Join(quoted, " | "), 500)
}

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
