package runtime

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Plugin is what the engine needs of a plugin that runs inside the host. A
// *sdk.Plugin has this shape, and so has everything on the other side of the
// wire.
//
// Describe is called first, Configure next and again when the configuration
// changes; Dispatch and CallTool then concurrently. Arguments belong to the
// plugin: the engine hands out copies.
type Plugin interface {
	Describe(ctx context.Context) (*phases.Description, error)
	Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error)
	Dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error)
	CallTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error)
}

// Launch says how to start a built-in plugin's process.
type Launch struct {
	// Path is the program. File, if set, is executed instead of what lies at Path
	// by then: a host that starts itself opens itself once, so that a replaced
	// file does not mix versions.
	Path string
	File *os.File
	Args []string
	// Env is added to the environment that the operator's file sets up.
	Env map[string]string
}

// Sink keeps manifests, what they cost, and on demand the texts of prompts. Its
// methods are called concurrently, on goroutines of the engine, with a context
// that ends soon. One that does not return then is given up: the turn goes on
// without it. A panic is an error. Each call has half a second, beside the turn's
// own time.
type Sink interface {
	// Append keeps m, for which it fills seq, prev and the hashes, and, when texts
	// is not empty, the rendered sections of its prompt, in one transaction. It is
	// called once a compiled turn, in the order of the turns of a thread. The
	// manifest is the sink's to keep; the texts are shared and must not be
	// changed.
	Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error
	// Last returns the newest manifest of a thread, nil (and no error) if there is
	// none. The engine does not change it.
	Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error)
	// Report keeps what the provider reported, beside the manifest. A manifest
	// that is not there is an error.
	Report(ctx context.Context, u manifest.Usage) error
}

// WaitFor says what New waits for. Reload waits for all plugins that it starts.
type WaitFor int

// The choices. All is the default.
const (
	// WaitAll waits until each plugin is ready or has failed once, each bounded
	// by its own start deadline.
	WaitAll WaitFor = iota
	// WaitRequired waits only for plugins that own a required subscription.
	WaitRequired
)

// Options are what a host's code wires into an engine, beside the operator's
// configuration. The zero value works for configurations without plugins.
type Options struct {
	// Builtins says how to start the plugins that a configuration names by
	// "builtin".
	Builtins map[string]Launch
	// InProcess are plugins that run inside the host, by declared name. They are
	// treated like any other, except that one which ignores its context can only
	// be abandoned.
	InProcess map[string]Plugin
	// Phases are the host's own phases, made with phases.Custom.
	Phases []phases.Row
	// WaitFor says what New waits for.
	WaitFor WaitFor
	// Services are host services by name. The service "state" is always there: the
	// engine's own, unless one of that name is here. Plugins call them by grants
	// that name a service, or one method as SERVICE.METHOD.
	Services map[string]Service
	// Complete asks a model for the plugins that have the grant: it is the host
	// service "model", method "complete", which is there if Complete is set. The
	// request is checked and has its MaxOutputTokens by the plugin's budget. It is
	// called concurrently, at most 64 times at once, with a context that ends before
	// the hook that asks does; one that does not return then is given up: the hook
	// goes on without it. A panic is an error. An error that is a *phases.Error
	// reaches the plugin with its code and message, others as "internal" or
	// "timeout" without their text. The answer's text may have 256 KiB and must be
	// JSON where the request has a schema. A host that wants all this otherwise
	// brings a service "model" of its own instead.
	Complete func(ctx context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error)
	// State keeps what plugins put into the service "state"; nil is memory, which a
	// restart empties.
	State State
	// Jobs runs background_job contributions of the host's own kinds, by
	// job_kind. A kind that is not here is a call of the contributing plugin's
	// tool of that name. A job may run more than once. An error is followed by
	// another attempt, up to five; one with CauseOverloaded or CauseUnavailable
	// puts the job off and is not counted.
	Jobs map[string]func(ctx context.Context, j Job) error
	// Queue keeps background work; nil is a queue in memory, which a restart
	// empties. It holds 1,024 jobs, a quarter of them of one plugin at most, and
	// tells each job that it gives up at the end by an event with the state "lost".
	// One that lasts is in store/jobqueue. It is to be closed after the engine.
	Queue Queue
	// Sink keeps manifests; nil keeps none.
	Sink Sink
	// Home is the folder of the runtime home, whose SOUL.md, IDENTITY.md and USER.md
	// are read for each prompt, unless the host brings those texts itself; empty is
	// no home. It need not be there: what is missing or cannot be read is a
	// diagnostic of the turn and never ends one.
	Home string
	// SeedHome makes New create the home with a SOUL.md and an IDENTITY.md where
	// they are absent. What is there is never touched. New fails if it cannot.
	SeedHome bool
	// Logger takes what operators should read; nil discards.
	Logger *slog.Logger
	// OnEvent is told everything that happens, synchronously and from many
	// goroutines: it must return at once and not call the engine. Nil is nobody.
	OnEvent func(Event)
	// BeginRun gives runs their place in the host's traces; nil leaves them without.
	// It is called once for each row of the ledger, before the first attempt or, for
	// a row that no call was made for, when it is told: with the caller's context (or,
	// from not empty, with the trace in which a queued run was put into the queue)
	// and the row as it is by then. It returns the context that the run goes on with,
	// what the plugin is told (Dispatch.Trace, ToolCall.Trace), and a function that
	// is called once with the settled row and the time at which the run was over.
	// What holds for OnEvent holds for it and for that function.
	BeginRun func(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(run *phases.Run, end time.Time))
	// OnExchange is told what each plugin was sent and has answered, for a record
	// that can be replayed; nil is nobody, and costs nothing. It is called right after
	// each exchange, while its caller waits, and from many goroutines. What it is
	// given belongs to others and must not be changed, nor kept when it returns. Its
	// first error is an event (EventDiagnostic, CodeNotRecorded) and changes nothing
	// else; a panic is an error.
	OnExchange func(x *Exchange) error
	// Host answers what the plugin of a name asks of its host, in place of the engine
	// with its services, grants and bounds: for a replay without any of them. Nil is
	// the engine.
	Host func(plugin string) phases.Host
	// CountTokens counts tokens for budgets and manifests; TokenizerName names it.
	// Nil leaves tokens out.
	CountTokens   func(string) int
	TokenizerName string
	// CacheRules tells how a model's prompt cache works, for predictions; nil
	// makes none, and false is a model that is not known. It is called once a
	// compilation, with the provider and model of the CompileInput.
	CacheRules func(provider, model string) (compiler.CacheRules, bool)
	// Now is the clock of contexts and manifests; nil is time.Now. Deadlines are
	// always measured on the monotonic clock.
	Now func() time.Time
	// Entropy is the source of the random part of manifest ids; nil is
	// crypto/rand. It must be safe for concurrent use.
	Entropy io.Reader
	// Health is how running plugins are asked for a sign of life.
	Health Health
	// Random gives numbers in [0, 1) for jitter; nil uses math/rand/v2.
	Random func() float64

	// slotHold is how long a start that does not end keeps others from theirs; 0 is
	// the supervisor's default. Tests hold them for longer.
	slotHold time.Duration

	_ struct{}
}

// Health is how often a running plugin is asked for a sign of life. One that misses
// too many in a row is killed and started again. Time in which the host itself was
// stopped, or asleep, does not count. The zero value has the defaults.
type Health struct {
	// Interval is the pause between two questions; 5 s by default.
	Interval time.Duration
	// Timeout is the time for one answer; 2 s by default.
	Timeout time.Duration
	// Misses in a row are too many; 3 by default.
	Misses int
}

// withDefaults fills nil functions.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.State == nil {
		o.State = newMemoryState()
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
