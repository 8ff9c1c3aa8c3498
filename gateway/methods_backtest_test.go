package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// fakeBacktests has one good configuration and a bad one. The command's tests have a real child.
type fakeBacktests struct {
	// wait makes a run last until it is interrupted, and interrupted is sent to then.
	wait        bool
	interrupted chan<- bool
}

func (fakeBacktests) Configs() ([]BacktestConfig, error) {
	return []BacktestConfig{{Name: "g.yaml", InForce: true}, {Name: "bad.yaml", Error: "bad.yaml:2:1: no"}}, nil
}

func (f fakeBacktests) Run(ctx context.Context, _ BacktestQuery, progress func(backtest.Pace)) (*backtest.Report, error) {
	progress(backtest.Pace{Calls: 3, AllFiles: 2})
	if f.wait {
		<-ctx.Done()
		f.interrupted <- true
	}
	tally := &backtest.Tally{Rows: slices.Repeat([]backtest.Row{{By: []backtest.Decision{}}}, mostBacktestRows+1), Partial: ctx.Err() != nil}
	r := tally.Report(&backtest.Found{}, &backtest.Progress{}, "")
	r.Calls[backtest.Deny], r.Denied[agent.Ran], r.RowsOmitted = 501, 501, 7
	return r, nil
}

// TestBacktest: one runs at a time and says how far it is; cancelling it has it answer with what there is, and another may
// begin. Nothing runs that was not listed.
func TestBacktest(t *testing.T) {
	t.Parallel()

	s := serve(t, Options{Backtests: fakeBacktests{true, make(chan bool, 2)}})
	c, other := s.dial(t, ""), s.dial(t, "")
	good := object{"config": "g.yaml", "days": 7}
	for range 2 {
		done := make(chan *backtestResult, 1)
		go func() {
			var r backtestResult
			if err := c.Call(t.Context(), "backtest/run", good, &r); err != nil {
				t.Error(err)
			}
			done <- &r
		}()
		if m := c.note(t); m.Method != notifyBacktest || decoded[backtest.Pace](t, m.Params).Calls != 3 {
			t.Errorf("notified of %s %s", m.Method, m.Params)
		}
		if _, bad := other.call(t, "backtest/run", good); bad.code() != rpc.CodeUnavailable || !strings.Contains(bad.Message, "a backtest of local is running") {
			t.Errorf("a second one: %+v", bad)
		}
		do[any](t, other, "backtest/cancel", nil)
		if r := <-done; !r.Partial || len(r.Rows) != mostBacktestRows || r.RowsOmitted != 8 || !strings.Contains(r.Hint, "501 of 501 ran") {
			t.Errorf("partial %v, %d rows, %d omitted, %q", r.Partial, len(r.Rows), r.RowsOmitted, r.Hint)
		}
	}
	for name, params := range map[string]object{
		"a path":             {"config": "../g.yaml", "days": 7},
		"a path for another": {"config": "g.yaml", "against": "/etc/passwd", "days": 7},
		"a bad one":          {"config": "bad.yaml", "days": 7},
		"no days":            {"config": "g.yaml", "days": 0},
		"an agent's flag":    {"config": "g.yaml", "days": 7, "agent": "codex --fresh"},
	} {
		if _, bad := c.call(t, "backtest/run", params); bad.code() != rpc.CodeInvalid {
			t.Errorf("%s: %+v", name, bad)
		}
	}
	if _, bad := serve(t, Options{}).post(t, "").call(t, "backtest/configs", nil); bad.code() != rpc.CodeUnavailable || !strings.Contains(bad.Message, "runs no backtests") {
		t.Errorf("without backtests: %+v", bad)
	}
}

// TestBacktestCallerGone: a run whose caller is gone is interrupted.
func TestBacktestCallerGone(t *testing.T) {
	t.Parallel()

	interrupted := make(chan bool, 1)
	c := serve(t, Options{Backtests: fakeBacktests{true, interrupted}}).dial(t, "")
	done := make(chan error, 1)
	go func() { done <- c.Call(t.Context(), "backtest/run", object{"config": "g.yaml", "days": 7}, nil) }()
	c.note(t)
	_ = c.Close() // its answer is lost
	if err := <-done; err == nil {
		t.Error("it was answered")
	}
	<-interrupted
}
