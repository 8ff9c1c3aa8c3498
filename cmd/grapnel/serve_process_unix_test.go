//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// served is a process of "grapnel serve".
type served struct {
	cmd *exec.Cmd
	// dir is its home, with everything that it keeps; line is what it printed.
	dir, line string
	errs      *tail
	out       *bufio.Reader
	ended     bool
}

// tail collects what a process says, and lets others wait for a word.
type tail struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	eof  bool
}

func newTail(r io.Reader) *tail {
	t := &tail{more: make(chan struct{})}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			t.mu.Lock()
			t.text.Write(buf[:n])
			t.eof = err != nil
			close(t.more)
			t.more = make(chan struct{})
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return t
}

// until waits for a word; empty for the end.
func (t *tail) until(tb testing.TB, word string) string {
	tb.Helper()
	return t.untilTimes(tb, word, 1)
}

// untilTimes is until for a word that was said so often.
func (t *tail) untilTimes(tb testing.TB, word string, times int) string {
	tb.Helper()
	over := tb.Context().Done()
	if word == "" {
		over = nil // the process was ended, and its test may be over
	}
	for {
		t.mu.Lock()
		text, eof, more := t.text.String(), t.eof, t.more
		t.mu.Unlock()
		switch {
		case word != "" && strings.Count(text, word) >= times, eof && word == "":
			return text
		case eof:
			tb.Fatalf("it ended without saying %q:\n%s", word, text)
		}
		select {
		case <-more:
		case <-over:
			tb.Fatalf("it never said %q:\n%s", word, text)
		}
	}
}

// serveIn starts a gateway whose home is a directory, and waits until it is ready.
func serveIn(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return serveAs(t, dir, nil, args...)
}

// serveAs is serveIn with more to be said about the process.
func serveAs(t *testing.T, dir string, attr *syscall.SysProcAttr, args ...string) *served {
	t.Helper()
	cmd, _ := programCommand(t, append([]string{"serve"}, args...)...)
	return serveWith(t, cmd, dir, attr)
}

// serveWith is serveAs with the command.
func serveWith(t *testing.T, cmd *exec.Cmd, dir string, attr *syscall.SysProcAttr) *served {
	t.Helper()
	cmd.Env = append(cmd.Env, homeIn(dir)...)
	cmd.SysProcAttr = attr
	out := must(cmd.StdoutPipe())(t)
	errs := must(cmd.StderrPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{cmd: cmd, dir: dir, errs: newTail(errs), out: bufio.NewReader(out)}
	t.Cleanup(func() { s.end(t, syscall.SIGKILL) })
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatalf("it does not serve: %s", s.errs.until(t, ""))
	}
	s.line = strings.TrimSuffix(line, "\n")
	return s
}

// homeIn is the environment by which everything of a user's is in a directory.
func homeIn(dir string) []string {
	return []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_RUNTIME_DIR=" + dir}
}

// end ends the process by a signal. It returns the exit code, and all that it said
// to standard error; that ends when no process of it is left.
func (s *served) end(t *testing.T, signal syscall.Signal) (code int, said string) {
	t.Helper()
	if s.ended {
		return 0, ""
	}
	s.ended = true
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	rest, _ := io.ReadAll(s.out)
	if len(rest) > 0 {
		t.Errorf("a second line on standard output: %q", rest)
	}
	said = s.errs.until(t, "")
	_ = s.cmd.Wait() // the code says it
	return s.cmd.ProcessState.ExitCode(), said
}

// dial connects to the gateway with the token that it made.
func (s *served) dial(t *testing.T, target string) *heard {
	t.Helper()
	token := must(readSecret(filepath.Join(s.dir, ".local", "share", "grapnel", madeSecret)))(t)
	return dial(t, target, token)
}

// target is where it listens.
func (s *served) target() string { return strings.TrimPrefix(s.line, "listening on ") }

// heard is a client and the notifications that it gets.
type heard struct {
	*client.Client

	notes chan string
}

// dial connects to a gateway.
func dial(t *testing.T, target, token string) *heard {
	t.Helper()
	h := &heard{notes: make(chan string, 64)}
	o := client.Options{Token: token}
	if !strings.HasPrefix(target, "http") {
		o.OnNotification = func(method string, params json.RawMessage) { h.notes <- method + " " + string(params) }
	}
	var err error
	if h.Client, err = client.Dial(t.Context(), target, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// waitFor waits for a notification with a word, such as its method. Others may come
// before it: a gateway tells what it learns, also of what was done shortly before.
func (h *heard) waitFor(t *testing.T, word string) {
	t.Helper()
	for {
		select {
		case note := <-h.notes:
			if strings.Contains(note, word) {
				return
			}
		case <-h.Done():
			t.Fatalf("the connection ended: %v", h.Err())
		case <-t.Context().Done():
			t.Fatalf("%s never came", word)
		}
	}
}

// object are params of a call.
type object = map[string]any

// ask calls a method, which must succeed, and returns its result.
func (h *heard) ask(t *testing.T, method string, params object) json.RawMessage {
	t.Helper()
	var result json.RawMessage
	if err := h.Call(t.Context(), method, params, &result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

// answer calls a method, which must succeed, and decodes its result.
func answer[R any](t *testing.T, c *heard, method string, params object) (r R) {
	t.Helper()
	if err := c.Call(t.Context(), method, params, &r); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

// grapnelIn runs a command with a home, and returns what it printed.
func grapnelIn(t *testing.T, dir string, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd, _ := programCommand(t, args...)
	cmd.Env = append(cmd.Env, homeIn(dir)...)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// wsOf is the WebSocket's target of an HTTP one.
func wsOf(url string) string { return "ws" + strings.TrimPrefix(url, "http") }

// serveStores returns for each kind what makes an empty store and returns the value of --store.
func serveStores() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.NewPostgres}
}
