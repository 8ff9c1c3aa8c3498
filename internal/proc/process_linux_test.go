package proc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
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

func TestPluginSeesOnlyItsEnvironment(t *testing.T) {
	t.Setenv("GRAPNEL_TEST_SECRET", "hush")
	t.Setenv("GRAPNEL_TEST_PASSED", "yes")
	b := setup(t)
	s := b.spec("environ")
	s.Env = proc.Environment{Pass: []string{"GRAPNEL_TEST_PASSED", "GRAPNEL_TEST_ABSENT"}, Set: map[string]string{"LANG": "C"}}
	b.act(t, s)
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
