package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// Status is the result of the method status.
type Status struct {
	Version       string    `json:"version"`
	StartedAt     time.Time `json:"started_at"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	// Store names the database, without passwords.
	Store string `json:"store"`
	// Config is where the configuration in force was read.
	Config      string  `json:"config"`
	Reload      *Reload `json:"reload"      jsonschema:"the last attempt to read the configuration again; null if there was none"`
	Connections int     `json:"connections"`
	Watchers    int     `json:"watchers"    jsonschema:"how often a connection watches a workspace"`
	// Seq is the place up to which changes were reported; null until the database was reached.
	Seq   *tree.Seq `json:"seq"`
	Turns TurnsKept `json:"kept_turns"`
	// Overview has plugins, hooks and phases. A plugin's row begins as "grapnel dispatch" prints it.
	runtime.Overview

	// Issues need attention, the worst first.
	Issues []Issue       `json:"issues"`
	Stats  runtime.Stats `json:"stats"`
	// Queue is the state of background work.
	Queue runtime.QueueStatus `json:"queue"`
	// Above is for agents that have Grapnel's hooks or plugin for all projects.
	Above map[string][]agent.Above `json:"above" jsonschema:"by agent, what is installed that can outvote, hide or change what Grapnel's hooks say"`
}

// TurnsKept counts kept turns.
type TurnsKept struct {
	Open        int     `json:"open"`
	Limit       int     `json:"limit"`
	IdleSeconds float64 `json:"idle_seconds" jsonschema:"without a call for so long a turn is ended"`
	EndedIdle   int     `json:"ended_idle"   jsonschema:"how many have been ended for that"`
}

func (t *turnTable) status() TurnsKept {
	t.mu.Lock()
	defer t.mu.Unlock()
	return TurnsKept{Open: len(t.open), Limit: t.most, IdleSeconds: t.idle.Seconds(), EndedIdle: t.idled}
}

// Plugins' own messages about failures are for operators.
func (g *Gateway) operatorMethods() []rpc.Method {
	all := group{everywhere: true}
	return []rpc.Method{
		method(group{}, "whoami", rpc.NoRight, "Says who calls, and what the caller may do.",
			func(_ context.Context, c call[anyone]) (identity, error) { return g.identityOf(c.Caller), nil }),
		method(group{}, "status", rpc.AdminRight, "Returns the state of the gateway: its plugins and hooks, issues and their hints, stats and connections.",
			func(ctx context.Context, _ call[anyone]) (Status, error) { return g.status(ctx), nil }),
		method(all.unless(g.opts.Load == nil, errNoReload.Message), "config/reload", rpc.AdminRight,
			"Reads configuration and tokens again and puts them in force, all or nothing. A refused one is a result that says why.",
			func(ctx context.Context, c call[anyone]) (Reload, error) {
				return g.Reload(ctx, ReloadCall, c.params.Actor), nil
			}),
		method(all.unless(g.opts.Engine == nil, errNoEngine.Message), "plugin/release", rpc.AdminRight,
			"Starts a plugin at once that is in quarantine or waits for its next start, forgets its failures, and closes its breakers. It waits for the start; one that failed again is a result that says so.",
			g.release),
	}
}

// identity is the result of whoami.
type identity struct {
	Name          string      `json:"name"           jsonschema:"the token's name; empty on a gateway without tokens"`
	Open          bool        `json:"open"           jsonschema:"whether the gateway has no tokens: then everybody who reaches it may do everything"`
	Rights        []rpc.Right `json:"rights"`
	AllWorkspaces bool        `json:"all_workspaces" jsonschema:"whether the caller may work in every workspace"`
	Workspaces    []string    `json:"workspaces"     jsonschema:"the workspaces that the caller is bound to; empty for all"`
	Version       string      `json:"version"        jsonschema:"the gateway's"`
}

func (g *Gateway) identityOf(c *rpc.Caller) identity {
	return identity{
		Name: c.Name, Open: c.Open, Rights: c.Rights(), AllWorkspaces: c.AllWorkspaces(), Workspaces: c.Workspaces(), Version: g.opts.Version,
	}
}

func (g *Gateway) status(ctx context.Context) Status {
	s := Status{
		Version: g.opts.Version, StartedAt: g.started.UTC(), UptimeSeconds: g.opts.Now().Sub(g.started).Seconds(),
		Store: g.opts.StoreName, Config: *g.config.Load(), Reload: g.lastReload.Load(), Connections: int(g.open.Load()), Watchers: g.hub.count(), Turns: g.turns.status(), Issues: []Issue{}, Above: map[string][]agent.Above{},
		Overview: runtime.Overview{Plugins: []runtime.PluginHealth{}, Hooks: []runtime.HookRow{}, Phases: []runtime.PhaseRow{}},
	}
	if _, sent, known := g.hub.place(); known {
		s.Seq = &sent
	}
	if g.opts.Above != nil {
		s.Above = g.opts.Above()
	}
	if g.opts.Engine != nil {
		s.Overview = g.opts.Engine.Overview()
		s.ReloadsRefused += g.refused.Load() // those that the engine does not know
		s.Issues = issues(&s.Overview)
		s.Stats = g.opts.Engine.Stats()
		s.Queue = g.queue(ctx)
	}
	return s
}

type releaseParams struct {
	Plugin string `json:"plugin"          jsonschema:"the plugin's name in the configuration"`
	Actor  string `json:"actor,omitempty"`
}

// release answers when the start has succeeded or failed.
func (g *Gateway) release(ctx context.Context, c call[releaseParams]) (*runtime.Released, error) {
	r, err := g.opts.Engine.Release(ctx, c.params.Plugin)
	if none, ok := errors.AsType[*runtime.ReleaseError](err); ok {
		code := rpc.CodeInvalid
		if none.Unknown {
			code = rpc.CodeNotFound
		}
		return nil, &rpc.Error{Code: code, Message: "plugin: " + none.Message, Err: err}
	}
	return r, err
}

// IssueKind is what is wrong with a plugin or hook: quarantined, backoff, breaker_open,
// failing, degraded, hanging, busy or sandbox_partial.
type IssueKind string

const (
	issueQuarantined IssueKind = "quarantined"     // a plugin that is not started any more
	issueBackoff     IssueKind = "backoff"         // a plugin that failed and is restarted by itself
	issueBreaker     IssueKind = "breaker_open"    // a hook that is not called because it failed too often in a row
	issueFailing     IssueKind = "failing"         // a hook whose last run failed
	issueDegraded    IssueKind = "degraded"        // a plugin that takes calls and is not well
	issueHanging     IssueKind = "hanging"         // a plugin that has not answered abandoned calls
	issueBusy        IssueKind = "busy"            // a plugin whose slots are all taken while calls wait
	issueSandbox     IssueKind = "sandbox_partial" // a plugin whose sandbox lacks something that was requested
)

func issueKinds() []IssueKind {
	return []IssueKind{issueQuarantined, issueBackoff, issueBreaker, issueFailing, issueDegraded, issueHanging, issueBusy, issueSandbox}
}

// Issue is a plugin or hook that needs attention.
type Issue struct {
	Kind   IssueKind `json:"kind"`
	Plugin string    `json:"plugin"`
	// Subscription is the hook's; empty for the plugin itself, its tools and its model calls.
	// Phase is empty for the plugin itself.
	Subscription string       `json:"subscription"`
	Phase        phases.Phase `json:"phase"`
	// Code is the cause, Reason the same for people. At is when it last failed, or got into its state.
	Code   string    `json:"code"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// InARow counts failed runs since the last success, FailOpen failures that did not stop
	// their phase. A plugin that is down has the sums of its hooks.
	InARow   uint64 `json:"failed_in_a_row"`
	FailOpen uint64 `json:"fail_open"`
	// Hint may help.
	Hint string `json:"hint"`
}

// issues finds current issues. Failures before the last success are in the stats only.
func issues(o *runtime.Overview) []Issue {
	all := []Issue{}
	down := map[string]int{} // indexes in all of plugins that take no calls
	for i := range o.Plugins {
		p := &o.Plugins[i]
		if t, ok := pluginIssue(p); ok {
			if t.Kind == issueQuarantined || t.Kind == issueBackoff {
				down[p.Plugin] = len(all)
			}
			all = append(all, t)
		}
	}
	for i := range o.Hooks {
		t, ok := hookIssue(&o.Hooks[i])
		if !ok {
			continue
		}
		if at, isDown := down[t.Plugin]; isDown && followsFromDown(t.Code) {
			all[at].InARow += t.InARow
			all[at].FailOpen += t.FailOpen
			continue
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b Issue) int {
		return cmp.Compare(slices.Index(issueKinds(), a.Kind), slices.Index(issueKinds(), b.Kind))
	})
	return all
}

// followsFromDown reports whether a hook may have failed only because its plugin is down.
func followsFromDown(code string) bool {
	return slices.Contains([]phases.Cause{
		phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseCrash, phases.CauseOOM, phases.CauseSessionReset,
	}, phases.Cause(code))
}

func pluginIssue(p *runtime.PluginHealth) (Issue, bool) {
	t := Issue{Plugin: p.Plugin, Code: p.Code, Reason: p.Message, At: p.Since}
	// A plugin that hangs as it starts is hardly ever in backoff: its starts take far longer than the first waits.
	startsAgain := p.State == phases.PluginStarting && p.Restarts > 0 && p.LastError != nil
	switch {
	case p.State == phases.PluginQuarantined:
		t.Kind = issueQuarantined
		t.Hint = hintOf(p.Code, "find out why it fails (its last lines are in the log)") +
			"; then: grapnel plugin release " + p.Plugin + " (after a change of its configuration: grapnel config reload)"
	case p.State == phases.PluginBackoff || startsAgain:
		t.Kind = issueBackoff
		if startsAgain {
			t.Code, t.Reason, t.At = p.LastError.Code, p.LastError.Message, p.LastError.At
		}
		t.Hint = "it is restarted by itself; if it goes on: " + hintOf(t.Code, "see its last lines in the log")
	case p.State == phases.PluginDegraded:
		t.Kind = issueDegraded
		t.Hint = hintOf(p.Code, "it still takes calls; if it lasts, see its lines in the log")
	case p.Abandoned > 0:
		t.Kind, t.Code = issueHanging, string(phases.CauseTimeout)
		t.Reason = fmt.Sprintf("%d of %d calls at once hang: their callers are gone, and it has not answered", p.Abandoned, p.Concurrency)
		t.Hint = "it ignores cancellation; with too many of them its process is replaced by itself"
	case p.Working >= p.Concurrency && p.Waiting > 0:
		t.Kind, t.Code = issueBusy, string(phases.CauseOverloaded)
		t.Reason = fmt.Sprintf("it works on %d calls, its limit, and %d wait", p.Working, p.Waiting)
		t.Hint = hintOf(t.Code, "")
	case len(p.TierLacks)+len(p.AbsentPaths) > 0:
		t.Kind, t.Code = issueSandbox, string(issueSandbox)
		t.Reason, t.Hint = sandboxLacks(p)
	default:
		return Issue{}, false
	}
	return t, true
}

func sandboxLacks(p *runtime.PluginHealth) (reason, hint string) {
	var reasons, hints []string
	if len(p.TierLacks) > 0 {
		reasons = append(reasons, p.Tier+" lacks on this kernel: "+strings.Join(p.TierLacks, ", "))
		hints = append(hints, "a newer kernel, or another tier")
	}
	if len(p.AbsentPaths) > 0 {
		reasons = append(reasons, "granted paths that did not exist when it started: "+strings.Join(p.AbsentPaths, ", "))
		hints = append(hints, "paths are granted if they exist at its next start")
	}
	return strings.Join(reasons, "; "), strings.Join(hints, "; ")
}

// hookIssue is the issue of a subscription, or of a plugin's tools or model calls.
func hookIssue(h *runtime.HookRow) (Issue, bool) {
	if h.LastError == nil || h.Off != "" {
		return Issue{}, false
	}
	t := Issue{
		Plugin: h.Plugin, Subscription: h.Subscription, Phase: h.Phase, Code: h.LastError.Code, Reason: h.LastError.Message, At: h.LastError.At,
		InARow: h.FailedInARow, FailOpen: h.FailOpen,
	}
	if h.LastError.PluginCode != "" {
		t.Reason = "its own code is " + h.LastError.PluginCode
	}
	switch {
	case h.Breaker == "open":
		t.Kind = issueBreaker
		t.Code, t.Reason = commonCause(h)
		t.Hint = "it is called again every few seconds; meanwhile its failure policy applies; " + hintOf(t.Code, "see why it failed in the log")
	case h.FailedInARow > 0:
		t.Kind = issueFailing
		t.Hint = hintOf(t.Code, "see why it failed in the log")
	default:
		return Issue{}, false
	}
	return t, true
}

// commonCause is the most frequent cause before the breaker opened; the breaker's own refusals say nothing.
func commonCause(h *runtime.HookRow) (code, reason string) {
	var most phases.Cause
	for _, cause := range phases.FailureCauses() {
		if cause != phases.CauseBreakerOpen && h.Failures[cause] > h.Failures[most] {
			most = cause
		}
	}
	return string(most), fmt.Sprintf("%d of %d runs failed with %s", h.Failures[most], h.Runs, cmp.Or(most, phases.CauseBreakerOpen))
}

// hintOf is what may help against a cause; otherwise is for those that say little.
func hintOf(code, otherwise string) string {
	return cmp.Or(map[phases.Cause]string{
		phases.CauseTimeout:            "compare its p99 with its timeout: raise timeout of its subscription, or find what it waits for",
		phases.CauseBudgetExhausted:    "others have used the time: see spent_by in grapnel dispatch --json, and budgets.phases",
		phases.CauseOverloaded:         "raise limits.concurrency of the plugin, or have it called less often (cache, when)",
		phases.CauseOOM:                "raise limits.memory of the plugin, or find what it keeps",
		phases.CausePluginError:        "what it said is in the log; grapnel plugin run tries it alone",
		phases.CauseInvalidReply:       "it breaks the contract of plugins: report that to its author; grapnel plugin run shows its answer",
		phases.CauseOversizeRequest:    "raise limits.frame of the plugin, or have it see or say less",
		phases.CauseOversizeReply:      "raise limits.frame of the plugin, or have it see or say less",
		phases.CauseForbidden:          "it lacks a grant: grapnel config check says which",
		phases.CauseConflict:           "another hook holds the same slot: give one a higher priority or another id (grapnel plan)",
		phases.CauseCondition:          "its when cannot be evaluated: correct it in the configuration",
		phases.CauseVersionMismatch:    "install a version of the plugin that speaks this protocol",
		phases.CauseChecksumMismatch:   "its program is not the pinned one: if you changed it, grapnel plugin pin --write",
		phases.CauseUnsafePath:         "others may write its program or a directory above it: chmod, or unsafe_path in the configuration",
		phases.CauseDescriptionChanged: "its hooks have changed since its first start: grapnel config reload accepts them",
		phases.CauseStartTimeout:       "raise limits.start of the plugin, or find what it waits for",
		phases.CauseInvalidFrame:       "it writes to standard output, which is its transport: have it log to standard error",
		phases.CauseStartNoise:         "it writes to standard output before the handshake: have it log to standard error",
		"rules_not_reloaded":           "correct the file, which is read again before the next call; see: grapnel rules check",
		phases.CauseExecFailed:         "see that its command exists, is for this system, and is executable",
	}[phases.Cause(code)], otherwise)
}

const (
	readyTime = 2 * time.Second // bounds the test of the database
	readyFor  = time.Second     // how long its result is cached: it costs a transaction, and anybody may ask
)

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

type readiness struct {
	Ready    bool   `json:"ready"`
	Database string `json:"database"` // "ok", or a word for what is wrong, as in Engine
	Engine   string `json:"engine"`
	Hint     string `json:"hint,omitempty"` // says what to do about the database
}

// ready reports whether calls are likely to succeed: 200, or 503. It names no file or server: anybody may ask.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	answer := g.readiness(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if text, err := json.Marshal(answer); err == nil { // it always encodes
		_, _ = w.Write(append(text, '\n'))
	}
}

func (g *Gateway) readiness(ctx context.Context) readiness {
	answer := readiness{Database: "ok", Engine: g.engineState()}
	if err := g.database.state(ctx, g); err != nil {
		answer.Database, answer.Hint = "unavailable", "look at the gateway's log"
		if e, ok := errors.AsType[*store.Error](err); ok && e.Hint != "" {
			answer.Database, answer.Hint = string(e.Code), e.Hint
		}
	}
	answer.Ready = answer.Database == "ok" && answer.Engine != "stopping"
	return answer
}

// probe caches the state of the database. Concurrent callers share one query.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// state does not end with its caller, because others share the result.
func (p *probe) state(ctx context.Context, g *Gateway) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := g.opts.Now()
	if since := now.Sub(p.at); !p.at.IsZero() && since >= 0 && since < readyFor {
		return p.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	was := p.err
	p.err = g.askDatabase(ctx)
	p.at = g.opts.Now()
	if p.err != nil && was == nil {
		g.opts.Logger.Error("the database fails", "error", p.err)
	} else if p.err == nil && was != nil {
		g.opts.Logger.Info("the database works again")
	}
	return p.err
}

func (g *Gateway) askDatabase(ctx context.Context) error {
	if g.opts.Probe != nil {
		if err := g.opts.Probe(ctx); err != nil {
			return err
		}
	}
	_, err := g.opts.Tree.Changes(ctx, newest, 1)
	return err
}

// engineState does not block. A plugin that is down does not make the gateway unready.
func (g *Gateway) engineState() string {
	if g.opts.Engine == nil {
		return "none"
	}
	ending := func(row phases.PluginRow) bool {
		return row.State == phases.PluginDraining || row.State == phases.PluginStopped
	}
	if slices.ContainsFunc(g.opts.Engine.Plugins(), ending) {
		return "stopping"
	}
	return "ok"
}

const newest = tree.Seq(math.MaxInt64) // after all changes: reading from there returns the newest place

// IdentityPath is where a gateway with [Options.Secret] proves its identity: GET with the
// parameter nonce returns its [Proof].
const IdentityPath = "/identity"

var nonceForm = lazyregexp.New(`^[A-Za-z0-9]{16,64}$`) // anybody may ask, so only this form is signed

// Proof answers a nonce with the secret. The address, as HOST:PORT, is where the gateway was
// asked, so that a program at another address that forwards the question gets a useless proof.
func Proof(secret []byte, nonce, address string) string {
	mac := hmac.New(sha256.New, secret)
	for _, part := range []string{"grapnel identity 1", nonce, address} {
		_, _ = io.WriteString(mac, part+"\x00") // a hash takes everything
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// identify takes no token: callers ask before they send theirs.
func (g *Gateway) identify(w http.ResponseWriter, r *http.Request) {
	nonce := r.URL.Query().Get("nonce")
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !nonceForm().MatchString(nonce) {
		http.Error(w, "nonce: 16 to 64 letters and digits", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, Proof(g.opts.Secret, nonce, at.String()))
}
