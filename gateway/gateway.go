package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway/internal/web"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// Engine is what the gateway needs of a *runtime.Engine.
type Engine interface { //nolint:interfacebloat // one engine, all of which clients call by name
	CompileTurn(ctx context.Context, turn phases.Context, in runtime.CompileInput) (*runtime.Compiled, error)
	BeginTurn(ctx context.Context, turn phases.Context) (*runtime.Turn, error)
	StartSession(ctx context.Context, s phases.Context, source string) (*runtime.Session, error)
	ResumeSession(ctx context.Context, s phases.Context, in *phases.SessionResumeInput) (*runtime.Session, error)
	EndSession(ctx context.Context, s phases.Context, reason string) (*phases.Outcome, error)
	ForgetSession(s phases.Context)
	ReportUsage(ctx context.Context, u manifest.Usage) error
	Collect(ctx context.Context) (context.Context, func(ctx context.Context) ([]phases.BackgroundRun, error))
	Dispatch(ctx context.Context, c phases.Context, in phases.Input) (*phases.Outcome, error)
	AwaitStarts(ctx context.Context)
	Plugins() []phases.PluginRow
	Config() *config.Config
	Descriptions() map[string]*phases.Description
	Plan(phase phases.Phase) runtime.PlanView
	Release(ctx context.Context, plugin string) (*runtime.Released, error)
	Stats() runtime.Stats
	Overview() runtime.Overview
	Queue(ctx context.Context) runtime.QueueStatus
}

// Log is what the gateway needs of a *store.Store.
type Log interface { //nolint:interfacebloat // one log, all of which clients read
	List(ctx context.Context, f store.Filter) ([]manifest.Index, error)
	Count(ctx context.Context, f store.Filter) (int, error)
	Get(ctx context.Context, id string) (*manifest.Manifest, error)
	Find(ctx context.Context, id string, f store.Filter) (store.Found, error)
	Text(ctx context.Context, hash string) (string, error)
	Judge(ctx context.Context, m *manifest.Manifest) (*manifest.Usage, error)
	Entries(ctx context.Context, f store.Filter) iter.Seq2[manifest.Entry, error]
	Verify(ctx context.Context, f store.Filter, o manifest.VerifyOptions) (manifest.Verdict, error)
	Search(ctx context.Context, q store.Query) (store.SearchResult, error)
	Stats(ctx context.Context, f store.Filter, since, until time.Time, seen func()) (manifest.Stats, error)
	Page(ctx context.Context, f store.Filter, before string) ([]store.Kept, error)
	KeptAfter(ctx context.Context, id int64, limit int) ([]store.Kept, error)
	Overviews(ctx context.Context, list []store.Kept) ([]manifest.Overview, error)
	Threads(ctx context.Context, workspace string, after int64, limit int) ([]store.Thread, error)
}

var (
	_ Engine = (*runtime.Engine)(nil)
	_ Log    = (*store.Store)(nil)
)

// Callers and their bounds.
type (
	// Token lets in callers who know its secret; the gateway has only the hash.
	Token = rpc.Token
	// Right is read, write, compile, dispatch or admin. None includes another.
	Right = rpc.Right
	// Limits bound what clients may ask for. Zero fields have the defaults in their comments.
	Limits = rpc.Limits
)

// Options configure a gateway. Only Tree is required.
type Options struct {
	// Tree holds workspaces, folders, threads and documents.
	Tree tree.Store
	// Engine compiles and dispatches; without one those methods are unavailable.
	Engine Engine
	// Log holds manifests; without one those methods are unavailable.
	Log Log

	// ConfigChange says why a change of an agent's settings must not hold in its session; empty if it may. It is called for
	// each such event of an agent's hooks. Without it all changes are only recorded.
	ConfigChange func(e *agent.Event) string
	// HasTools reports whether the agent that sends an event has this gateway's MCP server. Without it none has.
	HasTools func(e *agent.Event) bool
	// Above returns what stands above the hooks of agents, for status; nil for nothing.
	Above func() map[string][]agent.Above

	// Jobs, Memories and Events are for the methods about them; without one those methods are unavailable.
	Jobs     Jobs
	Memories Memories
	Events   *Events

	// Backtests are for the methods about them, one at a time; without them those methods are unavailable.
	Backtests Backtests

	// Roots are absolute paths of the directories that a turn's dir may lie in. Without roots every dir is refused.
	Roots []string
	// Facts are what prompts say about their environment. An empty zone is that of the turn's clock.
	Facts compiler.Facts
	// PromptChars is how much of a document a prompt takes: saving a longer one returns a warning. Zero never warns.
	PromptChars int
	// TurnIdle is how long a kept turn lives without a call, 10 minutes if 0. Then it ends as interrupted.
	TurnIdle time.Duration
	// Turns is how many turns are kept at most, 1,024 if 0. A token may have half of them.
	Turns int
	// Conversations are kept where it says so.
	Conversations Conversations

	// Config says where the configuration in force was read, for status.
	Config string
	// Load reads the operator's files again, for Reload, which fails without it. Its result beside an error may name
	// the Config.
	Load func(ctx context.Context) (*Loaded, error)
	// OnReload, if set, is called with the result of each Reload.
	OnReload func(r Reload)

	// Tokens are the callers. Nil lets in everybody on loopback and on a unix socket, but nobody else; an empty list
	// lets in nobody. Plugins are callers too: a sandbox does not keep them from a socket of their own user.
	Tokens []Token
	// Hosts are names, with or without a port, by which clients may call besides localhost and loopback addresses.
	// They keep a hostile page from making its own name point here.
	Hosts []string
	// Origins are origins of pages, like "https://example.org", that may connect besides the gateway's own.
	Origins []string
	Limits  Limits

	// Probe shows that the database can be written, for /readyz, as (*sqldb.DB).Probe does; at most once a second. If
	// nil, the database is only read.
	Probe func(ctx context.Context) error
	// Secret, if set, lets callers who know it verify that they have reached this gateway before they send a token:
	// see Proof.
	Secret []byte
	// Version and StoreName (without a password) are for status.
	Version, StoreName string
	// Logger is nil for none.
	Logger *slog.Logger
	// Now is time.Now if nil. Timers always use the system's clock.
	Now func() time.Time

	_ struct{}
}

// Gateway serves methods and reports changes.
//
// New starts nothing. Serve listens until its context ends, and may be called once. SetTokens and Reload may be
// called at any time. The caller closes the tree, the engine and the log after Serve.
type Gateway struct {
	opts     Options
	rpc      *rpc.Server
	hub      *hub
	kept     *keptWatch
	turns    *turnTable
	bridge   *bridge.Bridge                  // nil without an engine
	backtest atomic.Pointer[runningBacktest] // nil while none runs
	unknown  unknownEvents
	sessions sessionTable
	metrics  *metrics
	started  time.Time
	open     atomic.Int64 // connections

	database probe

	settings   atomic.Pointer[settings] // replaced by Reload, as is config; it holds reloading
	config     atomic.Pointer[string]
	reloading  chan struct{}
	deleted    chan struct{} // signals that conversations may be left over
	estimators estimators
	lastReload atomic.Pointer[Reload]
	refused    atomic.Uint64 // reloads that failed before the engine was involved
}

// New checks the options and makes a gateway.
func New(o Options) (*Gateway, error) {
	if o.Tree == nil {
		return nil, errors.New("gateway: there is no tree")
	}
	if o.TurnIdle < 0 || o.Turns < 0 {
		return nil, errors.New("gateway: TurnIdle and Turns are not negative")
	}
	if err := checkNames(o.Tokens); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.Conversations.complete(); err != nil {
		return nil, err
	}
	roots, err := realRoots(o.Roots)
	if err != nil {
		return nil, err
	}
	g := &Gateway{opts: o, sessions: sessionTable{owned: recent.New[phases.Context](mostSessions)}, started: o.Now(), reloading: make(chan struct{}, 1), deleted: make(chan struct{}, 1)}
	g.estimators.of = recent.New[*history.Estimator](mostEstimators)
	g.settings.Store(&settings{roots, o.PromptChars})
	g.config.Store(&o.Config)
	g.metrics = newMetrics(g)
	g.hub = newHub(o.Tree, o.Logger, g.metrics)
	g.kept = newKeptWatch(o.Log, o.Logger)
	g.turns = newTurnTable(&g.opts)
	if o.Engine != nil {
		g.bridge = bridge.New(o.Engine, o.Now)
	}
	types, err := wireTypes()
	if err != nil {
		return nil, err
	}
	g.rpc, err = rpc.New(rpc.Options{
		Methods: g.methods(), Notifications: notifications(), Schema: types.Of,
		Tokens: o.Tokens, Hosts: o.Hosts, Origins: o.Origins, Limits: o.Limits, Logger: o.Logger, Now: o.Now,
		OnCall: g.metrics.call, OnNotify: func(outcome string) { g.metrics.notes.WithLabelValues(outcome).Inc() }, OnConn: func(open int) { g.open.Store(int64(open)) },
	})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g, nil
}

// coldTime is how long after its start a gateway waits for plugins before it runs what an agent wants: the first event
// starts the gateway, and the time of a phase is too short for the start of an interpreter.
const coldTime = 8 * time.Second

// awaitPlugins waits until each plugin is ready or has failed once, or the gateway is as old as coldTime.
func (g *Gateway) awaitPlugins(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, g.started.Add(coldTime))
	defer cancel()
	g.opts.Engine.AwaitStarts(ctx)
}

// SetTokens replaces the tokens and closes connections of tokens that are gone or changed. If a token is invalid,
// nothing changes.
func (g *Gateway) SetTokens(tokens []Token) error {
	if err := checkNames(tokens); err != nil {
		return err
	}
	return g.rpc.SetTokens(tokens)
}

// checkNames refuses names that the tree refuses as actors: every call would fail.
func checkNames(tokens []Token) error {
	for _, t := range tokens {
		if err := tree.CheckActor(t.Name); err != nil {
			return fmt.Errorf("gateway: token %.80q: the actor: %w", t.Name, err)
		}
	}
	return nil
}

// LoginCode makes a code that logs in one page as the token of that name, within a minute: the page takes it from its
// address, as in http://HOST/#login=CODE. It is empty if there is no such token.
func (g *Gateway) LoginCode(token string) string { return g.rpc.LoginCode(token) }

// Serve answers on the listeners until ctx ends, and closes them. It then waits, within a bounded time, for calls in
// flight, and ends kept turns as interrupted.
func (g *Gateway) Serve(ctx context.Context, listeners ...net.Listener) error {
	// The hub outlives the calls, which may wait for it.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running, ending sync.WaitGroup
	for _, work := range []func(context.Context){g.hub.listen, g.hub.read, g.kept.run, g.thin, g.sweep} {
		running.Go(func() { work(background) })
	}
	// Turns end first, so that clients are notified over their connections.
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	served, endServed := context.WithCancel(ctx)
	ending.Go(func() {
		<-served.Done()
		g.interruptBacktest()
		left := g.turns.stop()
		g.notifyEnded(left)
		endCalls()
		g.endAll(background, left)
		g.endHooks(background, (*bridge.Bridge).Close)
	})
	err := g.rpc.Serve(calls, g.Handler(), listeners...)
	endServed()
	ending.Wait()
	stop()
	running.Wait()
	return err
}

// Handler serves what Serve does, for tests and hosts with a server of their own. Notifications and the end of idle
// turns need Serve.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", g.rpc.Handler())
	web.Register(mux, g.rpc.Guard)
	mux.Handle("POST "+hookPath+"{host}", g.rpc.Guard(http.HandlerFunc(g.serveHook)))
	mux.Handle(mcpPath, g.rpc.Guard(g.rpc.Require(rpc.DispatchRight, g.serveMCP())))
	mux.Handle("GET /healthz", g.rpc.GuardProbe(http.HandlerFunc(healthy)))
	mux.Handle("GET /readyz", g.rpc.GuardProbe(http.HandlerFunc(g.ready)))
	if len(g.opts.Secret) > 0 {
		mux.Handle("GET "+IdentityPath, g.rpc.Guard(http.HandlerFunc(g.identify)))
	}
	// Peers on this machine need no token. Guard comes first: a page could read the metrics through a name of its own
	// that points here.
	metrics := promhttp.HandlerFor(g.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
	mux.Handle("GET /metrics", g.rpc.Guard(g.rpc.Admit(rpc.ReadRight, metrics)))
	return mux
}

const (
	thinEvery = time.Hour
	thinTime  = 5 * time.Minute
)

// thin deletes old autosaves and what is left of deleted conversations, now and once an hour; several gateways may do so on one database.
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
			g.opts.Logger.Warn("old autosaves could not be thinned; the next attempt is in an hour", "error", err)
		case n > 0:
			g.opts.Logger.Info("old autosaves were thinned", "revisions", n)
		}
		g.sweepConversations(ctx)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				return
			case <-g.deleted:
				g.sweepConversations(ctx)
			case <-tick.C:
				due = true
			}
		}
	}
}

// Schema describes the gateway to clients: methods with the JSON Schemas of params and result, notifications, and
// errors. The same version returns the same bytes.
func Schema() (json.RawMessage, error) {
	types, err := wireTypes()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{} // its methods are not called
	s, err := rpc.New(rpc.Options{Methods: g.methods(), Notifications: notifications(), Schema: types.Of})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return s.Schema()
}
