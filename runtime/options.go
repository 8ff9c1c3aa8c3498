package runtime

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"time"

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

// Service is one host service that plugins may call by the grant "host".
// Methods and parameters are the service's own. It is called concurrently, with
// a context that carries the calling hook's deadline. An error that is an
// *phases.Error reaches the plugin with its code; others as "internal".
type Service interface {
	Call(ctx context.Context, caller Caller, method string, params json.RawMessage) (json.RawMessage, error)
}

// Caller says for whom a host service is called.
type Caller struct {
	// Plugin is the operator's name of the calling plugin.
	Plugin string
	// Context is that of the dispatch or tool call which the plugin is working
	// on; zero when it calls on its own account.
	Context phases.Context
}

// Sink keeps manifests. Append is called once a compiled turn, in the order of
// the turns of a thread, with a manifest that it may change: it fills the
// sequence number and the chain. It must return soon after ctx ends.
type Sink interface {
	Append(ctx context.Context, m *manifest.Manifest) error
}

// WaitFor says what New waits for.
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
	// Services are host services by name.
	Services map[string]Service
	// Jobs runs background_job contributions of the host's own kinds, by
	// job_kind. A kind that is not here is a call of the contributing plugin's
	// tool of that name. A job may run more than once. An error is followed by
	// another attempt, up to five; one with CauseOverloaded or CauseUnavailable
	// puts the job off and is not counted.
	Jobs map[string]func(ctx context.Context, j Job) error
	// Queue keeps background work; nil is a queue in memory, which a restart
	// empties. It holds 1,024 jobs, a quarter of them of one plugin at most, and
	// tells each job that it gives up at the end by an event with the state "lost".
	Queue Queue
	// Sink keeps manifests; nil keeps none.
	Sink Sink
	// Logger takes what operators should read; nil discards.
	Logger *slog.Logger
	// OnEvent is told everything that happens, synchronously and from many
	// goroutines: it must return at once and not call the engine.
	OnEvent func(Event)
	// CountTokens counts tokens for budgets and manifests; TokenizerName names it.
	// Nil leaves tokens out.
	CountTokens   func(string) int
	TokenizerName string
	// Now is the clock of contexts and manifests; nil is time.Now. Deadlines are
	// always measured on the monotonic clock.
	Now func() time.Time
	// Entropy is the source of the random part of manifest ids; nil is
	// crypto/rand. It must be safe for concurrent use.
	Entropy io.Reader
	// Random gives numbers in [0, 1) for jitter; nil uses math/rand/v2.
	Random func() float64

	_ struct{}
}

// withDefaults fills nil functions.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
