package commandhooks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/plugins/internal/procgroup"
)

const (
	// maxOut bounds what a script may answer, maxErr what is kept of its standard error.
	maxOut = 1 << 20
	maxErr = 64 << 10
	// grace is how long a script that is being ended has before it is killed, and how long its output is waited for
	// after its end.
	grace = 250 * time.Millisecond
)

var errTooMuch = errors.New("the output is longer than 1 MiB")

// execute runs a script. It gets its own process group, which is killed if ctx ends, if it says too much, or if children
// hold its output when it has ended. A child that does not is left alone: scripts start work in the background.
func execute(ctx context.Context, h *agent.Hook, f *agent.Facts, payload []byte) (*agent.Output, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	argv := scripts.Argv(h, f, os.Getenv("SHELL"), func(program string) bool { return lookPath(program) != "" })
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the operator named the file that names it
	if found := lookPath(argv[0]); found != "" {
		cmd.Path, cmd.Err = found, nil
	}
	dir, err := directory(h, f)
	if err != nil {
		return nil, err
	}
	out, errs := &head{most: maxOut, full: func() { stop(errTooMuch) }}, &head{most: maxErr}
	cmd.Env, cmd.Dir, cmd.WaitDelay = append(environ(), scripts.Environ(h, f, os.Getenv)...), dir, grace
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), out, errs
	procgroup.Own(cmd)
	cmd.Cancel = func() error { return procgroup.End(cmd) }
	err = cmd.Run()
	o := &agent.Output{Code: -1, Stdout: out.kept.Bytes(), Stderr: errs.kept.Bytes()}
	if cmd.ProcessState != nil {
		o.Code = cmd.ProcessState.ExitCode()
	}
	if cmd.Process != nil && (ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay)) {
		_ = procgroup.Kill(cmd) // nothing may be left of it
	}
	return o, outcome(ctx, h, cmd, err)
}

// outcome tells a script that has ended by itself, whose exit code counts, from one that has not.
func outcome(ctx context.Context, h *agent.Hook, cmd *exec.Cmd, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errTooMuch):
		return &agent.Failure{Code: "output_too_long", Message: h.Title() + " wrote more than 1 MiB to standard output"}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case cmd.ProcessState == nil:
		return notStarted(h, err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &agent.Failure{Code: "signal", Message: fmt.Sprintf("%s was ended by the signal %v", h.Title(), status.Signal())}
	}
	return nil
}

// notStarted is a program of which there was no process. Where a shell starts it, its exit codes 126 and 127 say so.
func notStarted(h *agent.Hook, err error) error {
	code := "start_failed"
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		code = agent.CodeNotFound
	case errors.Is(err, os.ErrPermission):
		code = agent.CodeNotExecutable
	}
	return &agent.Failure{Code: code, Message: fmt.Sprintf("%s could not be started: %v", h.Title(), err)}
}

// directory is where a script runs: where its file says, else in the session's directory, else in that of its project. One
// that is not there is an error, since a guard must not judge another directory.
func directory(h *agent.Hook, f *agent.Facts) (string, error) {
	dir := cmp.Or(h.Dir, f.Dir, h.Project)
	if dir == "" {
		return "", nil // the plugin's own
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return "", &agent.Failure{Code: "no_directory", Message: fmt.Sprintf("%s runs in a directory that is not there for the plugin: %v", h.Title(), err)}
	}
	return dir, nil
}

// environ is the plugin's environment without what belongs to its own session with the host. The mark stays: by it the
// host finds processes that a script leaves behind.
func environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return (strings.HasPrefix(name, "GRAPNEL_") || strings.HasPrefix(name, "PLUGIN_")) && name != "GRAPNEL_MARK"
	})
	return append(env, "PATH="+path())
}

// path is the plugin's PATH, or where programs are looked for if the operator passes none.
func path() string {
	return cmp.Or(os.Getenv("PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// lookPath finds a program in the plugin's PATH, of which relative directories do not count; empty if there is none. A name
// with a slash is itself.
func lookPath(program string) string {
	if strings.Contains(program, "/") {
		return ""
	}
	for _, dir := range filepath.SplitList(path()) {
		if found, err := exec.LookPath(filepath.Join(dir, program)); filepath.IsAbs(dir) && err == nil {
			return found
		}
	}
	return ""
}

// head keeps the beginning of an output, and reads on. full, if there is one, is called once when there is more.
type head struct {
	kept bytes.Buffer
	most int
	full func()
}

func (w *head) Write(p []byte) (int, error) {
	fits := min(len(p), w.most-w.kept.Len())
	w.kept.Write(p[:fits])
	if fits < len(p) && w.full != nil {
		w.full()
	}
	return len(p), nil
}
