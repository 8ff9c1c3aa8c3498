package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// notifyBacktest is sent to the connection that runs a backtest.
const notifyBacktest = "backtest/progress"

// Backtests have configurations judge what agents did, in a process of their own.
type Backtests interface {
	// Configs returns the configurations that can be chosen, the one in force first.
	Configs() ([]BacktestConfig, error)
	// Run runs a backtest by configurations of that list. If ctx ends, it is interrupted, and the report has what was judged by
	// then. progress may be called from another goroutine, but not after the return.
	Run(ctx context.Context, q BacktestQuery, progress func(backtest.Pace)) (*backtest.Report, error)
}

// BacktestConfig is a configuration that can be chosen.
type BacktestConfig struct {
	Name    string `json:"name"     jsonschema:"the file's name, without its directory"`
	InForce bool   `json:"in_force" jsonschema:"whether it is the gateway's own"`
	Error   string `json:"error"    jsonschema:"why it cannot be chosen; empty if it can"`
}

// BacktestQuery says what is judged, and by what.
type BacktestQuery struct {
	Config  string `json:"config"            jsonschema:"the name of a configuration, as backtest/configs lists it"`
	Against string `json:"against,omitempty" jsonschema:"the name of another one: only what the two decide differently is reported"`
	Days    int    `json:"days"              jsonschema:"how many days before now, 3650 at most"`
	Agent   string `json:"agent,omitempty"   jsonschema:"only transcripts of this one of the agents that backtest/configs lists"`
}

type (
	backtestParams struct {
		BacktestQuery

		Actor string `json:"actor,omitempty"`
	}
	backtestChoice struct {
		Configs []BacktestConfig `json:"configs" jsonschema:"the one in force first"`
		Agents  []string         `json:"agents"  jsonschema:"those whose transcripts can be read, and log: the calls that Grapnel has kept (manifest.keep_inputs)"`
	}
	backtestCancelled struct {
		Interrupted bool `json:"interrupted" jsonschema:"whether one was running"`
	}
	backtestResult struct {
		backtest.Report

		Hint string `json:"hint" jsonschema:"what became of the denied calls, where that suggests false alarms; else empty"`
	}
)

const (
	mostBacktestDays = 3650
	mostBacktestRows = 500
	backtestBytes    = 4 << 20 // what so many rows take at most
)

func (g *Gateway) backtestMethods() []rpc.Method {
	of := group{bytes: backtestBytes, everywhere: true}.unless(g.opts.Backtests == nil, "this gateway runs no backtests")
	return []rpc.Method{
		method(of, "backtest/configs", rpc.AdminRight, "Lists the configurations that backtest/run can have judge, and the agents whose transcripts it can read.",
			func(_ context.Context, _ call[anyone]) (backtestChoice, error) {
				configs, err := g.opts.Backtests.Configs()
				return backtestChoice{append([]BacktestConfig{}, configs...), transcribedAgents()}, err
			}),
		method(of, "backtest/run", rpc.AdminRight, "Has a configuration judge what the user's agents did, as \"grapnel backtest\" does, one run at a time. Sends "+notifyBacktest+
			" over a WebSocket meanwhile. The answer has the newest 500 rows; rows_omitted counts the others too. A run that is cancelled, or whose connection ends, keeps what it has judged for the next one.",
			g.runBacktest),
		method(of, "backtest/cancel", rpc.AdminRight, "Interrupts the backtest that runs: it answers with what it has judged.",
			func(context.Context, call[anyone]) (backtestCancelled, error) {
				return backtestCancelled{g.interruptBacktest()}, nil
			}),
	}
}

// transcribedAgents are the agents whose transcripts can be read, and the log, which has inputs of calls.
func transcribedAgents() (names []string) {
	for _, a := range agents.All() {
		if a.Transcripts != nil {
			names = append(names, a.Name)
		}
	}
	return append(names, backtest.Log)
}

func (g *Gateway) runBacktest(ctx context.Context, c call[backtestParams]) (backtestResult, error) {
	q := c.params.BacktestQuery
	if err := g.checkBacktest(&q); err != nil {
		return backtestResult{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for own := (&runningBacktest{c.params.Actor, cancel}); !g.backtest.CompareAndSwap(nil, own); {
		if other := g.backtest.Load(); other != nil {
			return backtestResult{}, rpc.Errorf(rpc.CodeUnavailable, "a backtest of %s is running, and one runs at a time: wait for its end, or cancel it", other.by)
		}
	}
	defer g.backtest.Store(nil)
	r, err := g.opts.Backtests.Run(ctx, q, func(p backtest.Pace) {
		if c.Conn != nil {
			c.Conn.Notify(notifyBacktest, notifyBacktest, p)
		}
	})
	if err != nil {
		return backtestResult{}, err
	}
	result := backtestResult{*r, r.Hint()}
	if more := len(r.Rows) - mostBacktestRows; more > 0 {
		result.Rows, result.RowsOmitted = r.Rows[:mostBacktestRows], r.RowsOmitted+more
	}
	return result, nil
}

// checkBacktest lets through what was listed, and nothing else: the names become those of files.
func (g *Gateway) checkBacktest(q *BacktestQuery) error {
	if err := checkCount("days", q.Days, mostBacktestDays); err != nil {
		return err
	}
	if known := transcribedAgents(); q.Agent != "" && !slices.Contains(known, q.Agent) {
		return rpc.Errorf(rpc.CodeInvalid, "agent: %.80q is not one of %s", q.Agent, strings.Join(known, ", "))
	}
	configs, err := g.opts.Backtests.Configs()
	if err != nil {
		return err
	}
	for _, id := range []namedID{{"config", q.Config}, {"against", cmp.Or(q.Against, q.Config)}} {
		i := slices.IndexFunc(configs, func(c BacktestConfig) bool { return c.Name == id.value })
		switch {
		case i < 0:
			return rpc.Errorf(rpc.CodeInvalid, "%s: %.80q is not a configuration that backtest/configs lists", id.name, id.value)
		case configs[i].Error != "":
			return rpc.Errorf(rpc.CodeInvalid, "%s: %s", id.name, configs[i].Error)
		}
	}
	return nil
}

// runningBacktest is a backtest that runs, and who has begun it.
type runningBacktest struct {
	by     string
	cancel context.CancelFunc
}

// interruptBacktest ends the context of the backtest that runs. It reports false if none does.
func (g *Gateway) interruptBacktest() bool {
	running := g.backtest.Load()
	if running != nil {
		running.cancel()
	}
	return running != nil
}
