//go:build unix

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// growth is one thing that there can be many of: prepare makes n of them and returns what is measured.
type growth struct {
	name    string
	sizes   []int
	prepare func(b *testing.B, n int) call
}

func growths() []growth {
	plugins, hooks, contributions, sections := []int{1, 3, 10, 30, 100}, []int{1, 3, 10, 30, 100, 300}, []int{1, 4, 16, 64, 256}, []int{1, 10, 100, 1000}
	inTurn := []int{1, 10, 100, 1000, 10_000, 20_000}
	return []growth{
		{"plugins declared, one hook", plugins, func(b *testing.B, n int) call { return dispatchIn(hosted(b, idle(n)...), &phases.PrePolicyInput{}) }},
		{"plugins declared, no hook", plugins, func(b *testing.B, n int) call { return dispatchIn(hosted(b, idle(n)...), &phases.PreToolsInput{}) }},
		{"hooks without an answer", hooks, manyHooks(func(int) phases.Contribution { return &phases.Noop{} })},
		{"hooks with a policy", hooks, manyHooks(policy)},
		{"hooks with a context", hooks, manyHooks(text)},
		{"hooks with a section", hooks, manyHooks(section)},
		{"policies of a hook", contributions, manyAnswers(policy)},
		{"contexts of a hook", contributions, manyAnswers(text)},
		{"sections of a hook", contributions, manyAnswers(section)},
		{"tools of a hook", contributions, manyAnswers(nil)},
		{"custom sections", sections, compileCustom},
		{"dispatches in a turn, another one", inTurn, inLongTurn(&phases.PreToolsInput{}, func(turn *runtime.Turn) error {
			_, err := turn.Dispatch(context.Background(), &phases.PreToolsInput{})
			return err
		})},
		{"tool calls in a turn, another one", inTurn, inLongTurn(&phases.ToolPreCallInput{Tool: "x"}, func(turn *runtime.Turn) error {
			_, err := turn.Dispatch(context.Background(), &phases.ToolPreCallInput{Tool: "x"})
			return err
		})},
	}
}

// BenchmarkGrowth measures what takes longer when there is more of something: a thing that takes ten times
// as long for ten times as many is linear.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range growths() {
		b.Run(g.name, func(b *testing.B) {
			for _, n := range g.sizes {
				b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
					op := g.prepare(b, n)
					b.ReportAllocs()
					begin := processorUsed(b)
					for b.Loop() {
						err := op()
						if errors.Is(err, errFull) {
							b.StopTimer()
							stopped := processorUsed(b)
							op = g.prepare(b, n)
							begin += processorUsed(b) - stopped
							b.StartTimer()
							err = op()
						}
						if err != nil {
							b.Fatal(err)
						}
					}
					reportProcessor(b, processorUsed(b)-begin, b.N)
				})
			}
		})
	}
}

// BenchmarkGrowthOfTurns makes a million turns one after another, and reports the processor time of the latest
// thousand and the heap that is left: of turns of one thread, and each of a session and thread of its own.
func BenchmarkGrowthOfTurns(b *testing.B) {
	for _, kind := range []string{"of one thread", "of new sessions", "of new workspaces"} {
		b.Run("turns "+kind, func(b *testing.B) {
			eng, done := hosted(b, local("p", hook(phases.PrePromptContext, func() []phases.Contribution { return []phases.Contribution{text(0)} }))), 0
			for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
				var took time.Duration // the first time that the benchmark runs
				b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
					for ; done < n; done++ {
						if done == n-1000 {
							took = -processorUsed(b)
						}
						if err := oneTurn(b, eng, kind, done); err != nil {
							b.Fatal(err)
						}
						if done == n-1 {
							took += processorUsed(b)
						}
					}
					reportProcessor(b, took, 1000)
					goruntime.GC()
					var m goruntime.MemStats
					goruntime.ReadMemStats(&m)
					b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
				})
			}
		})
	}
}

// processorUsed is what the process has used: unlike time, other work of the machine does not lengthen it.
func processorUsed(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func reportProcessor(b *testing.B, used time.Duration, calls int) {
	b.Helper()
	b.ReportMetric(float64(used.Nanoseconds())/float64(calls), "cpu-ns/op")
}

func oneTurn(b *testing.B, eng *runtime.Engine, kind string, number int) error {
	b.Helper()
	at := phases.Context{WorkspaceID: "w", ThreadID: "t", SessionID: "s", TurnID: strconv.Itoa(number)}
	if kind != "of one thread" {
		at.ThreadID, at.SessionID = fmt.Sprint("t", number), fmt.Sprint("s", number)
	}
	if kind == "of new workspaces" {
		at.WorkspaceID = fmt.Sprint("w", number)
	}
	turn, err := eng.BeginTurn(b.Context(), at)
	if err != nil {
		return err
	}
	if _, err = turn.Compile(b.Context(), runtime.CompileInput{}); err != nil {
		return err
	}
	_, err = turn.End(b.Context(), nil)
	return err
}

// hosted starts an engine with plugins inside the host, which may do everything.
func hosted(b *testing.B, plugins ...*sdk.Plugin) *runtime.Engine {
	b.Helper()
	all := []string{"*"}
	cfg, opts := &config.Config{Version: 1}, runtime.Options{InProcess: map[string]runtime.Plugin{}}
	for _, p := range plugins {
		cfg.Plugins = append(cfg.Plugins, config.Plugin{
			Name: p.Name, Grants: phases.Grants{Contribute: all, Sections: all, Policies: all, Domains: all, Tools: all},
		})
		opts.InProcess[p.Name] = p
	}
	return start(b, cfg, opts)
}

func local(name string, hooks ...sdk.Hook) *sdk.Plugin {
	return &sdk.Plugin{Name: name, Version: "1.0.0", Hooks: hooks}
}

func hook(phase phases.Phase, answer func() []phases.Contribution) sdk.Hook {
	kinds := map[phases.Phase]phases.Kind{phases.PrePolicy: phases.KindPolicy, phases.PrePromptCompile: phases.KindPromptSection, phases.PreTools: phases.KindToolBundle}
	return sdk.Hook{
		Name: "h", Phase: phase, Kinds: []phases.Kind{cmp.Or(kinds[phase], phases.KindPromptContext)},
		Any: func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) { return answer(), nil },
	}
}

// idle are so many plugins, of which the first has a hook in turn.pre_policy and the others elsewhere.
func idle(n int) []*sdk.Plugin {
	nothing := func() []phases.Contribution { return nil }
	list := []*sdk.Plugin{local("p0", hook(phases.PrePolicy, nothing))}
	for i := 1; i < n; i++ {
		list = append(list, local(fmt.Sprint("p", i), hook(phases.PostPreflight, nothing)))
	}
	return list
}

func dispatchIn(eng *runtime.Engine, in phases.Input) call {
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1"}
	return func() error {
		out, err := eng.Dispatch(context.Background(), turn, in)
		if err == nil && len(out.Runs) > 0 && out.Runs[len(out.Runs)-1].State != phases.StateSucceeded {
			err = fmt.Errorf("%+v", out.Runs)
		}
		return err
	}
}

func policy(i int) phases.Contribution {
	return &phases.Policy{Common: phases.Common{Domain: "d"}, Key: fmt.Sprint("k", i), Value: []byte("1")}
}

func text(i int) phases.Contribution {
	return &phases.PromptContext{Common: phases.Common{ContributionID: fmt.Sprint("c", i)}, Content: "some text"}
}

func section(i int) phases.Contribution {
	return &phases.PromptSection{SectionID: fmt.Sprint("s", i), Content: "some text"}
}

func phaseOf(c phases.Contribution) (phases.Phase, phases.Input) {
	switch c.(type) {
	case *phases.PromptContext:
		return phases.PrePromptContext, &phases.PrePromptContextInput{}
	case *phases.PromptSection:
		return phases.PrePromptCompile, &phases.PrePromptCompileInput{}
	case *phases.ToolBundle:
		return phases.PreTools, &phases.PreToolsInput{}
	}
	return phases.PrePolicy, &phases.PrePolicyInput{}
}

// manyHooks is a dispatch of n plugins with a hook each.
func manyHooks(answer func(i int) phases.Contribution) func(b *testing.B, n int) call {
	return func(b *testing.B, n int) call {
		b.Helper()
		phase, in := phaseOf(answer(0))
		list := make([]*sdk.Plugin, n)
		for i := range list {
			list[i] = local(fmt.Sprint("p", i), hook(phase, func() []phases.Contribution { return []phases.Contribution{answer(i)} }))
		}
		return dispatchIn(hosted(b, list...), in)
	}
}

// manyAnswers is a dispatch of one hook with n contributions, or with a bundle of n tools.
func manyAnswers(answer func(i int) phases.Contribution) func(b *testing.B, n int) call {
	return func(b *testing.B, n int) call {
		b.Helper()
		var all []phases.Contribution
		if answer == nil {
			bundle := &phases.ToolBundle{BundleID: "b"}
			for i := range n {
				bundle.Tools = append(bundle.Tools, phases.Tool{Name: fmt.Sprint("t", i), InputSchema: []byte(`{"type":"object"}`)})
			}
			all = append(all, bundle)
		} else {
			for i := range n {
				all = append(all, answer(i))
			}
		}
		phase, in := phaseOf(all[0])
		return dispatchIn(hosted(b, local("p", hook(phase, func() []phases.Contribution { return all }))), in)
	}
}

// compileCustom compiles n custom sections, after a prompt of the same.
func compileCustom(b *testing.B, n int) call {
	b.Helper()
	in := compiler.Input{}
	for i := range n {
		in.Custom = append(in.Custom, compiler.CustomSection{SectionID: fmt.Sprintf("c%06d", i), Text: "Be brief.", Stability: phases.StabilityStable})
	}
	before, err := compiler.Compile(in)
	if err != nil {
		b.Fatal(err)
	}
	m := before.Manifest()
	in.Previous = &compiler.Previous{Outline: m.Outline(), SameSession: true}
	return func() error { _, err := compiler.Compile(in); return err }
}

// errFull is returned by an operation that needs a new turn.
var errFull = errors.New("the ledger is full")

// inLongTurn is an operation in a turn with n dispatches of a phase without hooks before it.
func inLongTurn(in phases.Input, op func(*runtime.Turn) error) func(b *testing.B, n int) call {
	return func(b *testing.B, n int) call {
		b.Helper()
		eng := hosted(b, local("p", hook(phases.PrePromptCompile, func() []phases.Contribution { return []phases.Contribution{section(0)} })))
		turn, err := eng.BeginTurn(b.Context(), phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1"})
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			if _, err := turn.Dispatch(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
		return func() error {
			if turn.LedgerBytes() > 4<<20-4<<10 {
				return errFull
			}
			return op(turn)
		}
	}
}
