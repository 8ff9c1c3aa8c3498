package proc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

func TestStartFailures(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, mode string
		timeout    time.Duration
		code       phases.Cause
		message    string
	}{
		{"hangs before the handshake", "hang", 300 * time.Millisecond, phases.CauseStartTimeout, "wrote no handshake"},
		{"mute after the handshake", "mute", 2 * time.Second, phases.CauseStartTimeout, "nothing answers on its socket"},
		{"names a missing socket", "no-socket", 2 * time.Second, phases.CauseStartTimeout, "of the handshake is not there"},
		{"noise", "noise", 0, phases.CauseStartNoise, `it wrote "loading model…"`},
		{"noise without newline", "no-newline", 0, phases.CauseStartNoise, strings.Repeat("x", 200) + `"`},
		{"another protocol", "version", 0, phases.CauseVersionMismatch, `it speaks ["1" "99" "grpc"]`},
		{"another transport", "netrpc", 0, phases.CauseVersionMismatch, `["1" "1" "netrpc"]`},
		{"another machine", "far-away", 0, phases.CauseVersionMismatch, `"192.0.2.1:80"`},
		{"crash", "crash", 0, phases.CauseCrash, `tester exited with status 3 (crash): stderr: out of cheese`},
		{"panic", "panic", 0, phases.CauseCrash, `stderr: panic: `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setupParallel(t)
			ctx := t.Context()
			if tt.timeout > 0 {
				c, cancel := context.WithTimeout(ctx, tt.timeout)
				defer cancel()
				ctx = c
			}
			_, err := proc.Start(ctx, b.spec(tt.mode))
			if got := phases.CodeOf(err); got != tt.code || err == nil {
				t.Fatalf("code = %q, want %q: %v", got, tt.code, err)
			}
			if !strings.Contains(phases.Whole(err), tt.message) {
				t.Errorf("error %q does not contain %q", phases.Whole(err), tt.message)
			}
		})
	}
}

// TestLastLine: what a process writes right before it ends is logged, and is among its last words.
func TestLastLine(t *testing.T) {
	b := setup(t)
	for i := range 50 {
		_, err := proc.Start(t.Context(), b.spec("crash"))
		if !strings.Contains(phases.Whole(err), "out of cheese") {
			t.Fatalf("start %d: %s", i, phases.Whole(err))
		}
		select {
		case line := <-b.lines:
			if line.Message != "out of cheese" {
				t.Fatalf("start %d: logged %q", i, line.Message)
			}
		default:
			t.Fatalf("start %d: nothing was logged", i)
		}
	}
}

func TestStartStop(t *testing.T) {
	tests := []struct {
		name, mode string
		signal     syscall.Signal // sent to the plugin before Stop
		killed     bool
	}{
		{"well behaved", "serve", 0, false},
		{"stopped", "serve", syscall.SIGSTOP, true},
		{"ignores SIGTERM and the request", "stubborn", 0, true},
		{"leaves a closed directory", "litter", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			s := b.spec(tt.mode)
			if !tt.killed {
				s.Grace = time.Hour // nobody waits for it
			}
			p := b.start(t, s)
			if tt.signal != 0 {
				if err := syscall.Kill(p.PID(), tt.signal); err != nil {
					t.Fatal(err)
				}
				eventually(t, "not stopped", func() string {
					stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
					return strings.TrimPrefix(string(stat[bytes.LastIndexByte(stat, ')')+2:][:1]), "T")
				})
			}
			stop(t, p)
			if exit := p.Exit(); !exit.Asked || (exit.Signal == syscall.SIGKILL) != tt.killed {
				t.Errorf("exit %+v; want one that was asked for, by SIGKILL: %v", exit, tt.killed)
			}
			stop(t, p)
		})
	}
}

func TestStopAtOnceWhenContextEnds(t *testing.T) {
	b := setup(t)
	s := b.spec("stubborn")
	s.Grace = time.Hour
	p := b.start(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestStopByMany(t *testing.T) {
	b := setup(t)
	p := b.start(t, b.spec("serve"))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if i%4 == 0 {
				p.Kill()
			}
			stop(t, p)
			<-p.Done()
			p.Exit()
		})
	}
	wg.Wait()
}

func TestStartCancelled(t *testing.T) {
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := b.spec("hang")
	// The clock is first asked when the plugin's output or end comes, so the
	// mark is the one place at which a start can be stopped half-way.
	s.Random = readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	_, err := proc.Start(ctx, s)
	if got := phases.CodeOf(err); got != phases.CauseCancelled {
		t.Errorf("code = %q: %v", got, err)
	}
}

func TestStartAfterItsDeadline(t *testing.T) {
	b := setup(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	s := b.spec("serve")
	s.SHA256 = strings.Repeat("0", 64)
	_, err := proc.Start(ctx, s)
	if got := phases.CodeOf(err); got != phases.CauseStartTimeout {
		t.Errorf("code = %q: %v", got, err)
	}
}

// readerFunc is a reader that is a function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestCrashIsNoticed(t *testing.T) {
	b := setup(t)
	p := b.start(t, b.spec("children"))
	pids := b.children(t)
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done() // though children hold the pipes
	exit := p.Exit()
	if exit.Signal != syscall.SIGKILL || exit.Asked || exit.Code != -1 {
		t.Errorf("exit = %+v, want SIGKILL, not asked", exit)
	}
	if code := phases.CodeOf(exit.Err("tester")); code != phases.CauseCrash {
		t.Errorf("code = %q, want crash", code)
	}
	stop(t, p)
	b.checkDead(t, pids)
}

func TestDescendantsAreKilled(t *testing.T) {
	// The third child has neither group nor mark: only its parent leads to it.
	b := setup(t)
	p := b.start(t, b.spec("children", "no-mark"))
	pids := b.children(t)
	stop(t, p)
	b.checkDead(t, pids)
}

func TestOrphansOfFailedStart(t *testing.T) {
	b := setup(t)
	_, err := proc.Start(t.Context(), b.spec("orphans"))
	if got := phases.CodeOf(err); got != phases.CauseCrash {
		t.Fatalf("code = %q: %v", got, err)
	}
	b.checkDead(t, b.children(t))
}

func TestFloods(t *testing.T) {
	tests := []struct {
		name, mode  string
		minStray    int64
		wantDropped bool
		wantLine    string
	}{
		{"standard output without newline", "flood-out", 1 << 20, false, ""},
		{"standard error", "flood-err", 0, true, "dropped "},
		{"standard output over the connection", "print", 128 << 10, false, "late words"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			p := b.start(t, b.spec(tt.mode))
			if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			if tt.mode != "flood-err" { // its last line may be dropped
				b.waitLine(t, "done")
			} else {
				eventually(t, "the last line is not in the ring", func() string {
					if p.DroppedLines() > 150_000 {
						return ""
					}
					return strconv.Itoa(p.DroppedLines())
				})
			}
			if tt.mode == "print" {
				eventually(t, "stray output", func() string {
					if p.StrayOutput() >= tt.minStray {
						return ""
					}
					return strconv.FormatInt(p.StrayOutput(), 10)
				})
			}
			stop(t, p)
			if got := p.StrayOutput(); got < tt.minStray {
				t.Errorf("stray output = %d, want %d at least", got, tt.minStray)
			}
			if got := p.DroppedLines() > 0; got != tt.wantDropped {
				t.Errorf("dropped %d lines, want some: %v", p.DroppedLines(), tt.wantDropped)
			}
			if tt.wantLine != "" && !slices.ContainsFunc(b.drainLines(), func(l proc.LogLine) bool { return strings.HasPrefix(l.Message, tt.wantLine) }) && tt.mode != "print" {
				t.Errorf("no line begins with %q", tt.wantLine)
			}
			if n := len(strings.Join(p.Exit().Stderr, "\n")); n > 64<<10 {
				t.Errorf("%d bytes of stderr kept", n)
			}
		})
	}
}

func TestLogLinesAreTheHosts(t *testing.T) {
	b := setup(t)
	s := b.spec("logs")
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	s.Now = func() time.Time { return now }
	p := b.start(t, s)
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	got := b.waitLine(t, "ab")
	want := proc.LogLine{
		Plugin: "tester", Time: now, Level: 4, Message: "ab c",
		Fields: []proc.Field{{Key: "module", Value: "m"}, {Key: "n", Value: "3"}, {Key: "plugin", Value: "other"}},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("line (-got +want):\n%s", diff)
	}
	if got := got.Attr().String(); got != "tester=[module=m n=3 plugin=other]" {
		t.Errorf("Attr = %q", got)
	}
}

func TestPluginSeesOnlyItsEnvironment(t *testing.T) {
	t.Setenv("GRAPNEL_TEST_SECRET", "hush")
	t.Setenv("GRAPNEL_TEST_PASSED", "yes")
	b := setup(t)
	s := b.spec("environ")
	s.Env = proc.Environment{Pass: []string{"GRAPNEL_TEST_PASSED", "GRAPNEL_TEST_ABSENT"}, Set: map[string]string{"LANG": "C"}}
	p := b.start(t, s)
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	b.waitLine(t, "env ") // the first is GRAPNEL_LANE
	var names []string
	facts := map[string]string{}
	for l := b.waitLine(t, ""); l.Message != "done"; l = b.waitLine(t, "") {
		if entry, ok := strings.CutPrefix(l.Message, "env "); ok {
			name, _, _ := strings.Cut(entry, "=")
			names = append(names, name)
			continue
		}
		key, value, _ := strings.Cut(l.Message, " ")
		facts[key] = value
	}
	want := []string{
		"GRAPNEL_MARK", "GRAPNEL_PLUGIN", "GRAPNEL_TEST_PASSED", "LANG", "PLUGIN_MAX_PORT", "PLUGIN_MIN_PORT",
		"PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR", "TMPDIR",
	}
	if diff := cmp.Diff(names, want); diff != "" {
		t.Errorf("environment (-got +want):\n%s", diff)
	}
	if !strings.HasPrefix(facts["dir"], b.dir+"/grapnel-") {
		t.Errorf("working directory %q is not private", facts["dir"])
	}
	delete(facts, "dir")
	if diff := cmp.Diff(facts, map[string]string{"stdin": "/dev/null", "Max": "core file size 1 1 bytes", "comm": "tester"}); diff != "" {
		t.Errorf("process (-got +want):\n%s", diff)
	}
}
