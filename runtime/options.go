package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/keeper"
	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Plugin is what the engine needs of a plugin inside the host, such as a *sdk.Plugin, and of the other side of the
// wire. Describe is called first, Configure next and again when the configuration changes; Dispatch and CallTool then
// concurrently. Arguments are copies and belong to the plugin.
type Plugin interface {
	Describe(ctx context.Context) (*phases.Description, error)
	Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error)
	Dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error)
	CallTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error)
}

// Launch says how to start a built-in plugin's process: Path is the program, or File an open one that is executed in its
// place, Args are its arguments, and Env is added to the environment that the operator's file sets up.
type Launch = wire.Launch

// Queue keeps background work. A host can write its own, with three methods that may be called concurrently:
//
//	Add(ctx context.Context, j Job) error
//	Serve(ctx context.Context, work func(ctx context.Context, a Attempt) JobResult) error
//	Idle(ctx context.Context) error
//
// Add returns once the job cannot be lost. It fails with phases.CauseOverloaded if the queue is full or holds too many jobs
// of one plugin, and with ErrDuplicateJob for a Job.Key that it remembers. The engine calls Serve once. It calls work for
// each due job, several at once, and does what the result says; when ctx ends, it takes no more jobs and returns once
// running work has returned. A job is offered until a result is "done" or "discarded", also after the end of the process,
// unless its attempt had begun (Attempt.Begin). Idle waits until no job that this process added or took is running or due.
//
// A queue that also has Counts(ctx context.Context) (JobCounts, error) appears in Engine.Queue with its numbers.
type Queue = jobs.Queue

// JobCounts is how many jobs a queue holds: Waiting are due, Scheduled wait for their time or next attempt, Dead were
// discarded.
type JobCounts = jobs.Counts

// Job is one piece of background work, as plain data.
type Job = jobs.Job

// Attempt is one attempt at a job.
type Attempt = jobs.Attempt

// JobResult is the end of an attempt. Its Action says what to do with the job: "done"; "retry" after Job.RetryWait, with the
// next number; "requeued" for later with the same number; "discarded", kept for an operator. Err is the reason.
type JobResult = jobs.Result

// ErrDuplicateJob is what a queue returns, possibly wrapped, for a job whose key it remembers.
var ErrDuplicateJob = jobs.ErrDuplicate

// Sink keeps manifests, their usage, and on demand the texts of prompts; see its methods. Each call has half a second,
// beside the turn's own time; then the turn goes on without it.
type Sink = keeper.Sink

// WaitFor says what New waits for. Reload waits for all plugins that it starts.
type WaitFor int

// The choices. All is the default.
const (
	// WaitAll waits until each plugin is ready, or has failed once.
	WaitAll WaitFor = iota
	// WaitRequired waits only for plugins that own a required subscription.
	WaitRequired
)

// Options are what a host's code wires into an engine, beside the operator's configuration. The zero value works for
// configurations without plugins.
type Options struct {
	// Builtins are the plugins that a configuration names by "builtin".
	Builtins map[string]Launch
	// InProcess are plugins that run inside the host, by declared name. One that ignores its context can only be
	// abandoned.
	InProcess map[string]Plugin
	// Inline names those of them that promise never to block: their hooks run on the goroutine of whoever dispatches.
	// One that blocks all the same delays its turn beyond its budget.
	Inline []string
	// Phases are the host's own phases, made with phases.Custom.
	Phases []phases.Row
	// WaitFor says what New waits for.
	WaitFor WaitFor
	// AllowRequiredDown makes New succeed although a plugin of a required hook cannot start, for hosts that serve the rest
	// and show what is wrong: phases that require it fail closed (required_missing).
	AllowRequiredDown bool
	// Services are host services by name, beside the engine's own service "state", which one of that name replaces.
	// Plugins call them by grants that name a service, or one method as SERVICE.METHOD.
	Services map[string]Service
	// Complete asks a model for plugins with the grant: it is the method "complete" of the host service "model". The
	// request is checked and has its MaxOutputTokens by the plugin's budget. It is called concurrently, at most 64
	// times at once, with a context that ends before the asking hook does, and is abandoned then. A panic is an
	// error. A *phases.Error reaches the plugin with its code and message, other errors as "internal" or "timeout"
	// without their text. The answer's text may have 256 KiB and must be JSON where the request has a schema. For
	// other rules provide a service "model" instead.
	Complete func(ctx context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error)
	// State keeps the values of the service "state"; nil is memory, which a restart empties.
	State State
	// Jobs runs background_job contributions by job_kind. A kind that is not here is a call of the contributing
	// plugin's tool of that name. A job may run more than once: an error or a panic is followed by another attempt, up to
	// five; an error with CauseOverloaded or CauseUnavailable postpones the job and is not counted.
	Jobs map[string]func(ctx context.Context, j Job) error
	// Queue keeps background work, for this engine alone, and must outlive it; see store.Store.Queue. Nil is a queue in
	// memory, which a restart empties: it holds 1,024 jobs, a quarter of them of one plugin at most, and reports each
	// job that it drops at the end by an event with the state "lost".
	Queue Queue
	// Build is Grapnel's version as records have it; empty is what the program's build information says.
	Build string
	// Sink keeps manifests; nil keeps none.
	Sink Sink
	// PersonaDir is the directory of the persona files SOUL.md, IDENTITY.md and USER.md, which are read for each
	// prompt unless the host provides the texts; empty is none. What is missing or cannot be read is a diagnostic of
	// the turn.
	PersonaDir string
	// SeedPersona makes New create PersonaDir with a SOUL.md and an IDENTITY.md where they are absent, or fail.
	SeedPersona bool
	// Home is the home directory of the user whose calls are judged: what "~" stands for in their facts ([phases.Facts]).
	// Empty is that of the process.
	Home string
	// Logger takes what operators should read, such as a plugin that does not start; nil writes warnings and errors to
	// standard error. A host that wants none gives slog.New(slog.DiscardHandler).
	Logger *slog.Logger
	// OnEvent is called for everything that happens, synchronously and from many goroutines: it must return at once
	// and not call the engine. May be nil.
	OnEvent func(Event)
	// BeginRun gives runs their place in the host's traces; may be nil. It is called once for each row of the ledger:
	// before the first attempt, or for a row without a call when it is reported, with the caller's context (for a
	// queued run: with the trace from in which it was queued) and the row as it is. It returns the context to go on
	// with, the plugin's trace (Dispatch.Trace, ToolCall.Trace), and a function that is called once with the settled
	// row and the time when the run ended. Both follow the rules of OnEvent.
	BeginRun func(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(run *phases.Run, end time.Time))
	// OnExchange gets what each plugin was sent and has answered, right after each exchange, while its caller waits,
	// and from many goroutines. The exchange must not be changed or kept. Its first error or panic is an event
	// (EventDiagnostic, not_recorded) and changes nothing else. May be nil.
	OnExchange func(x *Exchange) error
	// Host answers the host calls of a plugin in place of the engine with its services, grants and bounds, for a
	// replay; nil is the engine.
	Host func(plugin string) phases.Host
	// CountTokens counts tokens for budgets and manifests; TokenizerName names it. Nil omits tokens.
	CountTokens   func(string) int
	TokenizerName string
	// CacheRules says how a model's prompt cache works, for predictions; false is an unknown model, nil predicts
	// nothing. It is called once a compilation.
	CacheRules func(provider, model string) (compiler.CacheRules, bool)
	// Now is the clock of contexts and manifests; nil is time.Now. Deadlines use the monotonic clock.
	Now func() time.Time
	// Entropy is the source of manifest ids, safe for concurrent use; nil is crypto/rand.
	Entropy io.Reader
	// Health is how running plugins are checked.
	Health Health
	// Random gives numbers in [0, 1) for jitter; nil uses math/rand/v2.
	Random func() float64

	_ struct{}
}

// Health is how often a running plugin must answer a ping. One that misses too many in a row is killed and started
// again. Time in which the host itself was stopped or asleep does not count. Fields that are not positive have the
// defaults.
type Health struct {
	// Interval is the pause between two pings; 5 s by default.
	Interval time.Duration
	// Timeout is the time for one answer; 2 s by default.
	Timeout time.Duration
	// Misses in a row are too many; 3 by default.
	Misses int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	o.State = cmp.Or[State](o.State, hostservice.NewMemoryState())
	o.Entropy = cmp.Or(o.Entropy, rand.Reader)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without one, "~" stands for nothing that is known
	}
	if o.Build == "" {
		o.Build = manifest.Build("")
	}
	return o
}

// preparePersona makes the directory of the persona files absolute, and seeds it if that is wanted.
func (o *Options) preparePersona() (err error) {
	var created []string
	o.PersonaDir, created, err = persona.Prepare(o.PersonaDir, o.SeedPersona)
	for _, path := range created {
		o.Logger.Info("the persona directory was seeded", "file", path)
	}
	return err
}
