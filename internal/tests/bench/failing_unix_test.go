//go:build unix

package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// patience bounds what a benchmark waits for.
const patience = 30 * time.Second

// watched is an engine whose events a benchmark waits for.
type watched struct {
	*runtime.Engine

	mu   sync.Mutex
	news chan struct{}
	pids map[string]int // of plugins that hang, by name
	logs int
	// starts counts how often plugins came up, failing whether the last thing that
	// one did was to go down.
	starts  int
	failing bool
}

// watch starts an engine and follows what its plugins say.
func watch(b *testing.B, cfg *config.Config) *watched {
	b.Helper()
	w := &watched{news: make(chan struct{}), pids: map[string]int{}}
	w.Engine = start(b, cfg, runtime.Options{OnEvent: w.note, Random: func() float64 { return 1 }}) // the shortest waits
	return w
}

func (w *watched) note(e runtime.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == runtime.EventLog {
		if pid, ok := strings.CutPrefix(e.Detail, hangs); ok {
			w.pids[e.Plugin], _ = strconv.Atoi(pid) // it is a number
			w.logs++
		}
	}
	if e.Kind == runtime.EventPlugin {
		w.failing = e.Code != ""
		if e.State == string(phases.PluginReady) {
			w.starts++
		}
	}
	close(w.news)
	w.news = make(chan struct{})
}

// await waits until something that events tell of is so.
func (w *watched) await(b *testing.B, what string, is func() bool) {
	b.Helper()
	timeout := time.After(patience)
	for {
		w.mu.Lock()
		news := w.news
		w.mu.Unlock()
		if is() {
			return
		}
		select {
		case <-news:
		case <-timeout:
			b.Fatalf("it did not happen: %s", what)
		}
	}
}

// hanging waits until so many calls have reached their plugins, and forgets them.
func (w *watched) hanging(b *testing.B, n int) map[string]int {
	b.Helper()
	w.await(b, "calls that hang", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.logs >= n
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = 0
	pids := w.pids
	w.pids = map[string]int{}
	return pids
}

// up waits until the plugin has come up n times, without the waits and the
// quarantine that would follow crashes in a row.
func (w *watched) up(b *testing.B, plugin string, n int) {
	b.Helper()
	w.await(b, plugin+" ready", func() bool {
		w.mu.Lock()
		up, failing := w.starts >= n, w.failing
		w.mu.Unlock()
		if failing {
			freed(w.Engine, plugin) // it may be on its way already
		}
		return up
	})
}

// hangers declares plugins whose hook hangs as long as timeout lets it.
func hangers(b *testing.B, n int, timeout time.Duration, mode string) *config.Config {
	b.Helper()
	cfg := engineConfig(b, n)
	cfg.Budgets.Turn.Time = phases.Duration(2 * patience)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: {Time: phases.Duration(patience)}}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		p.Args, p.Grants.See = []string{mode}, []string{"tool_calling"}
		p.Subscriptions = map[string]phases.Override{p.Name + ".hang": {Timeout: new(phases.Duration(timeout))}}
	}
	return cfg
}

// hang is a dispatch in which the hooks hang.
func (w *watched) hang() (*phases.Outcome, error) {
	return w.Dispatch(context.Background(), phases.Context{TurnID: "1", Mode: phases.ModeAgent}, &phases.PrePromptCompileInput{ToolCalling: true})
}

// quick is one in which they answer at once.
func (w *watched) quick() (*phases.Outcome, error) {
	return w.Dispatch(context.Background(), phases.Context{TurnID: "1", Mode: phases.ModeAgent}, &phases.PrePromptCompileInput{})
}

// answer has them answer, so that their breakers stay closed.
func (w *watched) answer(b *testing.B) {
	b.Helper()
	failed := func(run phases.Run) bool { return run.State != phases.StateSucceeded }
	for begin := time.Now(); ; {
		out, err := w.quick()
		if err != nil {
			b.Fatal(err)
		}
		i := slices.IndexFunc(out.Runs, failed)
		if i < 0 {
			return
		}
		if time.Since(begin) > patience {
			b.Fatalf("a hook that should have answered: %s %s", out.Runs[i].State, out.Runs[i].Code)
		}
	}
}

// callsAtOnce is how many calls a plugin has when it is killed.
const callsAtOnce = 4

// BenchmarkCrash kills a plugin with signal 9 while it has calls, and reports how
// long it takes until all of them are answered with "crash".
//
//	go test -run '^$' -bench 'Crash$' -benchtime 500x ./internal/tests/bench
func BenchmarkCrash(b *testing.B) {
	w := watch(b, hangers(b, 1, patience, hangMode))
	plugin := w.Plugins()[0].Plugin
	var took []time.Duration
	for i := range b.N {
		answered := make(chan error, callsAtOnce)
		for range callsAtOnce {
			go func() {
				out, err := w.hang()
				if err == nil && out.Runs[0].Code != string(phases.CauseCrash) {
					err = fmt.Errorf("the call ended as %s %s", out.Runs[0].State, out.Runs[0].Code)
				}
				answered <- err
			}()
		}
		pid := w.hanging(b, callsAtOnce)[plugin]
		begin := time.Now()
		send(b, pid, syscall.SIGKILL)
		for range callsAtOnce {
			if err := <-answered; err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(begin))
		w.up(b, plugin, i+2)
		w.answer(b)
	}
	quantiles(b, "", took)
}

// BenchmarkStopped stops a plugin with SIGSTOP and reports by how much a dispatch
// that it takes part in is longer than its timeout, beside a timer of the same
// length.
//
//	go test -run '^$' -bench Stopped -benchtime 200x ./internal/tests/bench
func BenchmarkStopped(b *testing.B) {
	const timeout = 100 * time.Millisecond
	w := watch(b, hangers(b, 1, timeout, hangMode))
	pid := selfOf(b, w)
	var over, timer []time.Duration
	for range b.N {
		w.answer(b)
		send(b, pid, syscall.SIGSTOP)
		begin := time.Now()
		rang := make(chan time.Duration, 1)
		time.AfterFunc(timeout, func() { rang <- time.Since(begin) })
		_, _ = w.quick() // how it ends, others test
		over = append(over, time.Since(begin)-timeout)
		timer = append(timer, <-rang-timeout)
		send(b, pid, syscall.SIGCONT)
	}
	quantiles(b, "over-", over)
	quantiles(b, "timer-over-", timer)
}

// selfOf asks the plugin that hangs in another phase for its process id.
func selfOf(b *testing.B, w *watched) int {
	b.Helper()
	for begin := time.Now(); time.Since(begin) < patience; {
		out, err := w.Dispatch(context.Background(), phases.Context{TurnID: "1", Mode: phases.ModeAgent}, &phases.PostPreflightInput{})
		if err != nil {
			b.Fatal(err)
		}
		if len(out.Merged.Contexts) == 1 {
			pid, err := strconv.Atoi(out.Merged.Contexts[0].Content)
			if err != nil {
				b.Fatal(err)
			}
			return pid
		}
	}
	b.Fatal("it does not answer")
	return 0
}

// BenchmarkClose closes an engine with twenty plugins that hang, each in a call:
// stopped ones, and such as do not end when they are told to. The target is the
// grace and 300 ms, 2.3 s.
//
//	go test -run '^$' -bench 'Close' -benchtime 10x ./internal/tests/bench
func BenchmarkClose(b *testing.B) {
	for _, mode := range []string{"stopped", "hanging"} {
		b.Run(mode, func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				took = append(took, closeHanging(b, mode == "stopped"))
			}
			quantiles(b, "", took)
			b.ReportMetric(slices.Max(took).Seconds(), "max-s")
		})
	}
}

// closeHanging is how long Close takes.
func closeHanging(b *testing.B, stop bool) time.Duration {
	b.Helper()
	w := watch(b, hangers(b, herd, patience, hangMode))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = w.hang() // ends somehow
	}()
	for _, pid := range w.hanging(b, herd) {
		if stop {
			send(b, pid, syscall.SIGSTOP)
		}
	}
	begin := time.Now()
	closeEngine(b, w.Engine)
	took := time.Since(begin)
	<-ended
	return took
}

func send(b *testing.B, pid int, s syscall.Signal) {
	b.Helper()
	if pid <= 0 {
		b.Fatalf("no process to signal: %d", pid)
	}
	if err := syscall.Kill(pid, s); err != nil {
		b.Fatal(err)
	}
}
