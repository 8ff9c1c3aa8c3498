package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/tree"
)

// Engine is what the gateway needs of a *runtime.Engine.
type Engine interface { //nolint:interfacebloat // one engine, all of which clients call by name
	CompileTurn(ctx context.Context, turn phases.Turn, in runtime.CompileInput) (*runtime.Compiled, error)
	BeginTurn(ctx context.Context, turn phases.Turn) (*runtime.Turn, error)
	StartSession(ctx context.Context, s phases.Session, source string) (*runtime.Session, error)
	ResumeSession(ctx context.Context, s phases.Session, in *phases.SessionResumeInput) (*runtime.Session, error)
	EndSession(ctx context.Context, s phases.Session, reason string) (*phases.Outcome, error)
	ForgetSession(s phases.Session)
	Collect(ctx context.Context) (context.Context, func(ctx context.Context) ([]phases.BackgroundRun, error))
	Dispatch(ctx context.Context, c phases.Context, in phases.Input) (*phases.Outcome, error)
	Plugins() []phases.PluginRow
	Release(ctx context.Context, plugin string) (*runtime.Released, error)
	Stats() runtime.Stats
	Overview() runtime.Overview
	Queue(ctx context.Context) runtime.QueueStatus
}

// Log is what the gateway needs of a *store.Store.
type Log interface {
	List(ctx context.Context, f store.Filter) ([]manifest.Index, error)
	Get(ctx context.Context, id string) (*manifest.Manifest, error)
	Find(ctx context.Context, id string, f store.Filter) (store.Found, error)
	Verify(ctx context.Context, f store.Filter, o manifest.VerifyOptions) (manifest.Verdict, error)
}

var (
	_ Engine = (*runtime.Engine)(nil)
	_ Log    = (*store.Store)(nil)
)

// Options are what a gateway is made of.
type Options struct {
	// Tree holds workspaces, folders, threads and documents. It must be there.
	Tree tree.Store
	// Engine compiles and dispatches; without one those methods are unavailable.
	Engine Engine
	// Log holds manifests; without one those methods are unavailable.
	Log Log

	// Roots are the folders that a turn's dir may lie in, absolute paths; none
	// refuses every dir.
	Roots []string
	// Facts are what prompts say about where they are compiled. The zone, where it
	// is empty, is that of the turn's clock.
	Facts compiler.Facts
	// PromptChars is how much of a document the prompt hook keeps: a longer one is
	// saved with a warning. Zero never warns.
	PromptChars int
	// TurnIdle is how long a turn that a client has begun is kept without a call: 10
	// minutes if 0. Then it is ended as interrupted.
	TurnIdle time.Duration
	// Turns is how many turns are kept at most: 1,024 if 0. A token may have half of
	// them.
	Turns int

	// Config names where the configuration in force was read, for status.
	Config string
	// Load reads the operator's files again, for Reload; nil cannot. What it
	// returns beside an error may name the Config.
	Load func(ctx context.Context) (*Loaded, error)
	// OnReload is told what became of each Reload; nil is nobody.
	OnReload func(r Reload)

	// RPC says who may call and how much. Methods, Notifications, Types, Logger,
	// Now and the callbacks are the gateway's to fill in.
	RPC rpc.Options

	// Probe shows that the database can be written, for /readyz, as (*sqldb.DB).Probe
	// does: its error is why not. It is called at most once a second. Nil only reads.
	Probe func(ctx context.Context) error
	// Secret lets callers who know it make sure that it is this gateway which they
	// have reached, before they send a token: see Proof. None proves nothing.
	Secret []byte
	// Version and StoreName are what the method status says of the program and of
	// where it keeps things; a StoreName has no password in it.
	Version, StoreName string
	// Logger is nil for none.
	Logger *slog.Logger
	// Now is time.Now if nil. Timers always go by the system's clock.
	Now func() time.Time

	_ struct{}
}

// Gateway serves methods and tells what changed.
//
//  1. New makes it; nothing runs yet, and nothing has to be closed.
//  2. Serve listens until its context ends. It may be called once.
//  3. SetTokens and Reload may be called at any time.
//
// The tree, the engine and the log stay the caller's: they are closed by the
// caller, behind the end of Serve.
type Gateway struct {
	opts     Options
	rpc      *rpc.Server
	hub      *hub
	turns    *turnTable
	sessions sessionTable
	metrics  *metrics
	started  time.Time
	open     atomic.Int64 // connections

	database probe

	// settings and config are what Reload replaces; reloading is held by one.
	settings   atomic.Pointer[settings]
	config     atomic.Pointer[string]
	reloading  chan struct{}
	lastReload atomic.Pointer[Reload]
	// refused are the reloads that failed before the engine was asked.
	refused atomic.Uint64
}

// New checks the options and makes a gateway.
func New(o Options) (*Gateway, error) {
	if o.Tree == nil {
		return nil, errors.New("gateway: there is no tree")
	}
	if o.TurnIdle < 0 || o.Turns < 0 {
		return nil, errors.New("gateway: TurnIdle and Turns are not negative")
	}
	if r := &o.RPC; r.Methods != nil || r.Notifications != nil || r.OnCall != nil || r.OnConn != nil || r.OnNotify != nil {
		return nil, errors.New("gateway: methods, notifications and callbacks of Options.RPC are the gateway's")
	}
	if err := checkNames(o.RPC.Tokens); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	roots, err := realRoots(o.Roots)
	if err != nil {
		return nil, err
	}
	g := &Gateway{opts: o, sessions: newSessionTable(), started: o.Now(), reloading: make(chan struct{}, 1)}
	g.settings.Store(&settings{roots, o.PromptChars})
	g.config.Store(&o.Config)
	g.metrics = newMetrics(g)
	g.hub = newHub(o.Tree, o.Logger, g.metrics)
	g.turns = newTurnTable(&g.opts)
	if err := g.newServer(); err != nil {
		return nil, err
	}
	return g, nil
}

// newServer makes the transport with all methods.
func (g *Gateway) newServer() error {
	types, err := wireTypes()
	if err != nil {
		return err
	}
	o := g.opts.RPC
	o.Methods, o.Notifications, o.Types = g.methods(), notifications(), types
	o.Logger, o.Now = g.opts.Logger, g.opts.Now
	o.OnCall, o.OnNotify = g.metrics.call, g.metrics.notified
	o.OnConn = func(open int) { g.open.Store(int64(open)) }
	if g.rpc, err = rpc.New(o); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// SetTokens puts other tokens in force. Connections of tokens that are not in force
// any more, or grant something else now, are closed. An error names what cannot be
// meant; then everything stays as it was.
func (g *Gateway) SetTokens(tokens []rpc.Token) error {
	if err := checkNames(tokens); err != nil {
		return err
	}
	return g.rpc.SetTokens(tokens)
}

// checkNames refuses tokens with names that no tree takes for an actor: every call
// with them would fail.
func checkNames(tokens []rpc.Token) error {
	for _, t := range tokens {
		if err := tree.CheckActor(t.Name); err != nil {
			return fmt.Errorf("gateway: token %.80q: it is who acts: %w", t.Name, err)
		}
	}
	return nil
}

// Serve answers on the listeners until ctx ends; calls that are on their way end
// first, and turns that are kept are ended as interrupted, within a bounded time. It
// closes the listeners.
func (g *Gateway) Serve(ctx context.Context, listeners ...net.Listener) error {
	// The hub outlives the calls, which may be waiting for it.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running, ending sync.WaitGroup
	for _, work := range []func(context.Context){g.hub.listen, g.hub.read, g.thin, g.sweep} {
		running.Go(func() { work(background) })
	}
	// Clients learn that their turns end while there are connections to say it over.
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	served, endServed := context.WithCancel(ctx)
	ending.Go(func() {
		<-served.Done()
		left := g.turns.stop()
		g.tellEnded(left)
		endCalls()
		g.endAll(background, left)
	})
	err := g.rpc.Serve(calls, g.Handler(), listeners...)
	endServed()
	ending.Wait()
	stop()
	running.Wait()
	return err
}

// Handler serves everything that Serve does, for tests and for hosts with a server
// of their own. Notifications need Serve, and so does the end of turns that no client
// ends.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", g.rpc.Handler())
	mux.Handle("GET /healthz", g.rpc.GuardProbe(http.HandlerFunc(healthy)))
	mux.Handle("GET /readyz", g.rpc.GuardProbe(http.HandlerFunc(g.ready)))
	if len(g.opts.Secret) > 0 {
		mux.Handle("GET "+IdentityPath, g.rpc.Guard(http.HandlerFunc(g.identify)))
	}
	mux.Handle("GET /metrics", g.rpc.Guard(g.rpc.Admit(rpc.ReadRight, g.metrics.handler())))
	return mux
}

// Times of thin.
const (
	thinEvery = time.Hour
	thinTime  = 5 * time.Minute
)

// thin takes old autosaves away, now and once an hour. Several gateways may do so
// on one database.
func (g *Gateway) thin(ctx context.Context) {
	tick := time.NewTicker(thinEvery)
	defer tick.Stop()
	for {
		work, cancel := context.WithTimeout(ctx, thinTime)
		n, err := g.opts.Tree.Thin(work, g.opts.Now())
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			g.opts.Logger.Warn("old autosaves could not be thinned; it is tried again in an hour", "error", err)
		case n > 0:
			g.opts.Logger.Info("old autosaves were thinned", "revisions", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
