package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/tree"
)

type (
	beginParams struct {
		Turn  phases.Context `json:"turn"            jsonschema:"where and when; workspace_id, thread_id and turn_id are needed. A dir must lie below one of the gateway's roots"`
		Actor string         `json:"actor,omitempty"`
	}
	compileParams struct {
		Handle string          `json:"handle,omitempty" jsonschema:"the turn to compile in, as turn/begin gave it"`
		Turn   *phases.Context `json:"turn,omitempty"   jsonschema:"instead of a handle: a turn that ends with its prompt, as turn/begin takes it"`
		Input  api.TurnInput   `json:"input,omitzero"   jsonschema:"what the host brings"`
		Actor  string          `json:"actor,omitempty"`
	}
	turnDispatchParams struct {
		Handle string          `json:"handle"          jsonschema:"the turn, as turn/begin gave it"`
		Phase  phases.Phase    `json:"phase"           jsonschema:"any but turn.post_turn and those of sessions, which have methods of their own"`
		Input  json.RawMessage `json:"input,omitempty" jsonschema:"the input of the phase, as its schema has it"`
		Actor  string          `json:"actor,omitempty"`
	}
	toolParams struct {
		Handle         string          `json:"handle"                    jsonschema:"the turn, as turn/begin gave it"`
		Tool           string          `json:"tool"                      jsonschema:"the tool's name, as turn/compile has offered it"`
		Arguments      json.RawMessage `json:"arguments,omitempty"       jsonschema:"the arguments, as the model gave them"`
		IdempotencyKey string          `json:"idempotency_key,omitempty" jsonschema:"the id that the model gave the call: the same call again does nothing twice"`
		Actor          string          `json:"actor,omitempty"`
	}
	reportParams struct {
		Handle  string                   `json:"handle"            jsonschema:"the turn, as turn/begin gave it"`
		Changes []manifest.RequestChange `json:"changes,omitempty" jsonschema:"what the request had different from the prompt's record; absent if nothing"`
		Usage   *phases.Usage            `json:"usage,omitempty"   jsonschema:"what the provider reported for the request. Who knows only the sum gives it to turn/end instead"`
		Actor   string                   `json:"actor,omitempty"`
	}
	endParams struct {
		Handle string               `json:"handle"          jsonschema:"the turn, as turn/begin gave it"`
		End    phases.PostTurnInput `json:"end"             jsonschema:"how the turn ended, as the input of turn.post_turn. Without a user_text it has that of the first turn/compile"`
		Wait   bool                 `json:"wait,omitempty"  jsonschema:"answer only when the background work of this gateway is done"`
		Actor  string               `json:"actor,omitempty"`
	}
)

type begunTurn struct {
	Handle      string  `json:"handle"       jsonschema:"names the turn in further calls to this gateway, by the same token"`
	IdleSeconds float64 `json:"idle_seconds" jsonschema:"without a call for so long the turn is ended as interrupted"`
	InSession   bool    `json:"in_session"   jsonschema:"whether this gateway knows how the turn's session began; if not, call session/resume before the next turn"`
}

type toolAnswer struct {
	Content     json.RawMessage     `json:"content"         jsonschema:"the tool's answer, any JSON"`
	IsError     bool                `json:"is_error"        jsonschema:"whether the tool tells the model of a failure, or error says why it did not answer"`
	Diagnostics []phases.Diagnostic `json:"diagnostics"`
	Error       *phases.Error       `json:"error,omitempty" jsonschema:"why the call was refused, or failed; content is null then"`
}

// For is the answer as the audience may see it.
func (a *toolAnswer) For(who phases.Audience) *toolAnswer {
	return &toolAnswer{Content: a.Content, IsError: a.IsError, Diagnostics: phases.DiagnosticsFor(a.Diagnostics, who), Error: a.Error.For(who)}
}

// These methods look up the workspace of their turn themselves.
func (g *Gateway) turnMethods() []rpc.Method {
	return []rpc.Method{
		method("turn/begin", rpc.DispatchRight,
			"Begins a turn and keeps it, until turn/end, or as long as calls come: what its phases bring (policies, contexts, tools) holds for the next ones. No plugin is called yet.",
			g.begin),
		method("turn/compile", rpc.CompileRight,
			"Compiles the prompt of a turn and records its manifest: in a kept turn (handle) that of the next round, after the phases ahead that the turn has not passed yet; else (turn) as \"grapnel compile\" does. A turn that was denied, or whose phase failed closed, is a result with an error in it.",
			g.compile),
		method("turn/dispatch", rpc.DispatchRight,
			"Runs one phase in a kept turn. One that failed closed is a result with an error in it.",
			g.dispatchInTurn),
		method("tool/call", rpc.DispatchRight,
			"Calls a tool in a kept turn, or request_tools, which loads hidden ones. A call that was refused, or failed, is a result with an error in it.",
			g.callTool),
		method("turn/report", rpc.DispatchRight,
			"Puts on record what became of the turn's last prompt: how the request differed from it, and what the provider reported. Call it once a round.",
			g.report),
		method("turn/end", rpc.DispatchRight,
			"Ends a kept turn, when its calls have returned: the plugins are notified, and go on in the background.",
			g.end),
	}
}

func errNoEngine() error {
	return rpc.Errorf(rpc.CodeUnavailable, "this gateway has no engine: it compiles and dispatches nothing")
}

func (g *Gateway) begin(ctx context.Context, c call[beginParams]) (begunTurn, error) {
	where, err := g.completeTurn(ctx, c.Caller, c.params.Turn)
	if err != nil {
		return begunTurn{}, err
	}
	if err := g.turns.reserve(c.Caller); err != nil {
		return begunTurn{}, err
	}
	turn, err := g.opts.Engine.BeginTurn(ctx, where)
	if err != nil {
		g.turns.release(c.Name)
		return begunTurn{}, engineError(err)
	}
	kept, ok := g.turns.keep(c.Caller, turn, turn.Context())
	if !ok { // the gateway stops
		g.turns.release(c.Name)
		_, err := turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnInterrupted})
		return begunTurn{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "the gateway is stopping", Err: err}
	}
	return begunTurn{Handle: kept.handle, IdleSeconds: g.turns.idle.Seconds(), InSession: turn.InSession()}, nil
}

// inTurn makes a call in a kept turn. If the turn's end cuts it short, the error says so.
func inTurn[R any](ctx context.Context, g *Gateway, c *rpc.Caller, handle string, do func(ctx context.Context, k *keptTurn) (R, error)) (R, error) {
	var none R
	ctx, kept, leave, err := g.turns.enter(ctx, c, handle)
	if err != nil {
		return none, err
	}
	defer leave()
	// The workspace may have been deleted meanwhile.
	if err := g.checkWorkspace(ctx, c, kept.context.WorkspaceID); err != nil {
		return none, err
	}
	r, err := do(ctx, kept)
	if errors.Is(context.Cause(ctx), errTurnEnds) || errors.Is(err, runtime.ErrTurnEnded) {
		return none, errTurnEnds
	}
	return r, err
}

// compile answers as "grapnel compile --json" prints, also for a blocked turn.
func (g *Gateway) compile(ctx context.Context, c call[compileParams]) (*runtime.Compiled, error) {
	p := &c.params
	switch {
	case p.Handle != "" && p.Turn != nil:
		return nil, rpc.Errorf(rpc.CodeInvalid, "handle and turn are both there: give the handle of a turn that turn/begin began, or a turn that ends with its prompt")
	case p.Handle != "":
		return inTurn(ctx, g, c.Caller, p.Handle, func(ctx context.Context, k *keptTurn) (*runtime.Compiled, error) {
			return g.compileRound(ctx, c, k)
		})
	case p.Turn == nil:
		return nil, rpc.Errorf(rpc.CodeInvalid, "turn: it is missing; give a turn, or the handle of one that turn/begin began")
	}
	turn, err := g.completeTurn(ctx, c.Caller, *p.Turn)
	if err != nil {
		return nil, err
	}
	return resultOf(g.opts.Engine.CompileTurn(ctx, turn, g.compileInput(&p.Input, turn.Now)))
}

// compileRound compiles one round after the other.
func (g *Gateway) compileRound(ctx context.Context, c call[compileParams], k *keptTurn) (*runtime.Compiled, error) {
	select {
	case k.round <- struct{}{}:
		defer func() { <-k.round }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := rpc.Expect(ctx, answerBytes+k.LedgerBytes()*manifestFactor); err != nil {
		return nil, err
	}
	g.turns.keepUserText(k, c.params.Input.UserText)
	return resultOf(k.Compile(ctx, g.compileInput(&c.params.Input, k.context.Now)))
}

func (g *Gateway) compileInput(given *api.TurnInput, at time.Time) runtime.CompileInput {
	in := given.CompileInput()
	in.Facts = g.opts.Facts
	in.Facts.TimeZone = cmp.Or(in.Facts.TimeZone, api.ZoneName(at))
	return in
}

func (g *Gateway) dispatchInTurn(ctx context.Context, c call[turnDispatchParams]) (*phases.Outcome, error) {
	in, err := phaseInput(c.params.Phase, c.params.Input)
	if err != nil {
		return nil, err
	}
	switch c.params.Phase {
	case phases.PostTurn:
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: %s is the end of a turn: call turn/end", c.params.Phase)
	case phases.SessionStart, phases.SessionResume, phases.SessionEnd:
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: %s is in no turn: call session/start, session/resume or session/end", c.params.Phase)
	default:
	}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*phases.Outcome, error) {
		return resultOf(k.Dispatch(ctx, in))
	})
}

// resultOf returns the result of a phase; if it failed after its begin, the result says so.
func resultOf[T any](result *T, err error) (*T, error) {
	if result == nil {
		return nil, engineError(err)
	}
	return result, nil
}

func (g *Gateway) callTool(ctx context.Context, c call[toolParams]) (*toolAnswer, error) {
	call := phases.ToolCall{Tool: c.params.Tool, Arguments: c.params.Arguments, IdempotencyKey: c.params.IdempotencyKey}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*toolAnswer, error) {
		res, err := k.CallTool(ctx, call)
		if refused, ok := errors.AsType[*phases.Error](err); ok {
			return &toolAnswer{IsError: true, Diagnostics: []phases.Diagnostic{}, Error: refused}, nil
		}
		if err != nil {
			return nil, engineError(err)
		}
		return &toolAnswer{Content: res.Content, IsError: res.IsError, Diagnostics: append([]phases.Diagnostic{}, res.Diagnostics...)}, nil
	})
}

func (g *Gateway) report(ctx context.Context, c call[reportParams]) (struct{}, error) {
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (struct{}, error) {
		var err error
		if c.params.Usage != nil {
			err = k.ReportUsage(ctx, *c.params.Usage)
		}
		if err == nil {
			err = k.ReportRequest(c.params.Changes)
		}
		return struct{}{}, reportError(err)
	})
}

// reportError blames the caller for all but a failure to keep what was reported.
func reportError(err error) error {
	failed, coded := errors.AsType[*phases.Error](err)
	switch {
	case err == nil || errors.Is(err, runtime.ErrTurnEnded) || errors.Is(err, runtime.ErrClosed):
		return engineError(err)
	case !coded:
		return &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error(), Err: err}
	case failed.Code == phases.CauseBudgetExhausted:
		return engineError(err)
	}
	return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the report was not kept (" + string(failed.Code) + ")", Err: err}
}

func (g *Gateway) end(ctx context.Context, c call[endParams]) (*phases.Outcome, error) {
	if err := phases.ValidateInput(&c.params.End); err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	kept, err := g.turns.take(c.Caller, c.params.Handle)
	if err != nil {
		return nil, err
	}
	g.metrics.turns.WithLabelValues(string(endAsked)).Inc()
	end := func(ctx context.Context) (*phases.Outcome, error) {
		return resultOf(g.turns.finish(ctx, kept, &c.params.End))
	}
	if !c.params.Wait {
		return end(ctx)
	}
	return g.collected(ctx, "the turn has ended", end)
}

func (g *Gateway) completeTurn(ctx context.Context, c *rpc.Caller, turn phases.Context) (phases.Context, error) {
	if err := needIDs("turn", "manifests are kept, and prompts compared, by it",
		namedID{"workspace_id", turn.WorkspaceID}, namedID{"thread_id", turn.ThreadID}, namedID{"turn_id", turn.TurnID}); err != nil {
		return turn, err
	}
	return g.completeContext(ctx, c, "turn", turn)
}

// collected makes a call of the engine, waits for the background work that it queued, and adds that to the outcome.
// Work that takes too long goes on; the error then says what has succeeded, in done.
func (g *Gateway) collected(ctx context.Context, done string, call func(ctx context.Context) (*phases.Outcome, error)) (*phases.Outcome, error) {
	calling, wait := g.opts.Engine.Collect(ctx)
	out, err := call(calling)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, late := wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case late != nil:
		return nil, rpc.Errorf(rpc.CodeUnavailable, "%s; its background work was not done within %v and goes on", done, callTime)
	}
	out.Background = rows
	return out, nil
}

type (
	sessionStartParams struct {
		Context phases.Context `json:"context"          jsonschema:"where and when; workspace_id and session_id are needed. Turns of the session carry both"`
		Source  string         `json:"source,omitempty" jsonschema:"startup (also if absent), or clear"`
		Actor   string         `json:"actor,omitempty"`
	}
	sessionResumeParams struct {
		Context phases.Context  `json:"context"         jsonschema:"as of session/start"`
		State   json.RawMessage `json:"state,omitempty" jsonschema:"what the host recorded of the session, any JSON"`
		Actor   string          `json:"actor,omitempty"`
	}
	sessionEndParams struct {
		Context phases.Context `json:"context"          jsonschema:"as of session/start"`
		Reason  string         `json:"reason,omitempty" jsonschema:"the host's word for why"`
		Wait    bool           `json:"wait,omitempty"   jsonschema:"answer only when the background work of this gateway is done"`
		Actor   string         `json:"actor,omitempty"`
	}
)

func (g *Gateway) sessionMethods() []rpc.Method {
	return []rpc.Method{
		method("session/start", rpc.DispatchRight,
			"Begins a session: runs session.start, and keeps the contexts that it brings for the session's turns at this gateway. Reminders are the client's to deliver.",
			g.startSession),
		method("session/resume", rpc.DispatchRight,
			"Takes a session up again, also one of another gateway or from before a restart: runs session.resume, and keeps what it brings as session/start does.",
			g.resumeSession),
		method("session/end", rpc.DispatchRight,
			"Ends a session: runs session.end, whose hooks go on in the background, and forgets what was kept for its turns. Turns of it that are open go on.",
			g.endSession),
		method("phase/dispatch", rpc.DispatchRight,
			"Runs one phase without a turn: there are no policies, contexts or hidden tools, and a phase with a hook that needs a turn is refused (turn_needed). One that failed closed is a result with an error in it.",
			g.dispatch),
	}
}

func (g *Gateway) startSession(ctx context.Context, c call[sessionStartParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	switch c.params.Source {
	case "":
		c.params.Source = "startup"
	case "startup", "clear":
	default:
		return nil, rpc.Errorf(rpc.CodeInvalid, "source: %.40q is neither startup nor clear", c.params.Source)
	}
	return begunSession(g.opts.Engine.StartSession(ctx, s, c.params.Source))
}

func (g *Gateway) resumeSession(ctx context.Context, c call[sessionResumeParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	in := &phases.SessionResumeInput{State: c.params.State}
	if err := phases.ValidateInput(in); err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	return begunSession(g.opts.Engine.ResumeSession(ctx, s, in))
}

func begunSession(s *runtime.Session, err error) (*phases.Outcome, error) {
	if s == nil {
		return nil, engineError(err)
	}
	return s.Outcome, nil
}

func (g *Gateway) endSession(ctx context.Context, c call[sessionEndParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	defer g.releaseSession(&s)
	end := func(ctx context.Context) (*phases.Outcome, error) {
		return resultOf(g.opts.Engine.EndSession(ctx, s, c.params.Reason))
	}
	if !c.params.Wait {
		return end(ctx)
	}
	return g.collected(ctx, "the session has ended", end)
}

func (g *Gateway) completeSession(ctx context.Context, c *rpc.Caller, s phases.Context) (phases.Context, error) {
	if err := needIDs("context", "a session's turns carry it", namedID{"workspace_id", s.WorkspaceID}, namedID{"session_id", s.SessionID}); err != nil {
		return s, err
	}
	return g.completeContext(ctx, c, "context", s)
}

const mostSessions = 4096

// sessionTable is which token a session belongs to: the first that names it, until session/end.
// Others must not read what its start returned, use up its reminders, or end it.
type sessionTable struct {
	mu    sync.Mutex
	owned recent.Map[phases.Context]
}

func sessionKey(s *phases.Context) string { return s.WorkspaceID + "\x00" + s.SessionID }

// claimSession makes the session the caller's, or refuses it if it belongs to another token
// that still has the workspace.
func (g *Gateway) claimSession(c *rpc.Caller, name string, s *phases.Context) error {
	if s.SessionID == "" {
		return nil
	}
	g.sessions.mu.Lock()
	defer g.sessions.mu.Unlock()
	owned := &g.sessions.owned
	owner, taken := owned.Owner(sessionKey(s))
	switch {
	case taken && owner == c.Name:
		return nil
	case taken && g.rpc.TokenMay(owner, s.WorkspaceID):
		return rpc.Errorf(rpc.CodeUnauthorized, "%s.session_id: the session %q of this workspace belongs to another token, until that ends it (session/end): take another id", name, s.SessionID)
	case taken:
		owned.Drop(sessionKey(s))
		g.opts.Engine.ForgetSession(*s)
	}
	id := phases.Context{WorkspaceID: s.WorkspaceID, SessionID: s.SessionID}
	if old, full := owned.Put(c.Name, sessionKey(s), id); full {
		g.opts.Engine.ForgetSession(old)
	}
	return nil
}

func (g *Gateway) releaseSession(s *phases.Context) {
	g.sessions.mu.Lock()
	defer g.sessions.mu.Unlock()
	g.sessions.owned.Drop(sessionKey(s))
}

type dispatchParams struct {
	Phase   phases.Phase    `json:"phase"`
	Context phases.Context  `json:"context,omitzero" jsonschema:"where and when. A dir must lie below one of the gateway's roots"`
	Input   json.RawMessage `json:"input,omitempty"  jsonschema:"the input of the phase, as its schema has it"`
	Actor   string          `json:"actor,omitempty"`
}

// dispatch answers as "grapnel dispatch --json" prints.
func (g *Gateway) dispatch(ctx context.Context, c call[dispatchParams]) (*phases.Outcome, error) {
	in, err := phaseInput(c.params.Phase, c.params.Input)
	if err != nil {
		return nil, err
	}
	where, err := g.completeContext(ctx, c.Caller, "context", c.params.Context)
	if err != nil {
		return nil, err
	}
	return resultOf(g.opts.Engine.Dispatch(ctx, where, in))
}

func phaseInput(phase phases.Phase, raw json.RawMessage) (phases.Input, error) {
	table := phases.Standard()
	if _, known := table.Lookup(phase); !known {
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: unknown phase %q%s", phase, suggest.DidYouMean(string(phase), table.Names()))
	}
	in, err := phases.DecodeInput(table, phase, raw)
	if err == nil {
		err = phases.ValidateInput(in)
	}
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	return in, nil
}

// completeContext fills in what the command line does, except for ids and a directory. It
// checks the workspace, the session's owner, and that there is an engine.
func (g *Gateway) completeContext(ctx context.Context, caller *rpc.Caller, name string, c phases.Context) (phases.Context, error) {
	if err := phases.CheckContext(&c); err != nil {
		return c, rpc.Errorf(rpc.CodeTooLarge, "%s.%s", name, err.Message)
	}
	if err := g.checkWorkspace(ctx, caller, c.WorkspaceID); err != nil {
		return c, err
	}
	c, err := api.Complete(c)
	if err != nil {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.profile: %v", name, err)
	}
	if c.DirRoot != "" {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.dir_root: the gateway sets it, by serve.roots of its configuration", name)
	}
	if c.Dir, c.DirRoot, err = g.inRoots(c.Dir); err != nil {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.dir: %v", name, err)
	}
	if g.opts.Engine == nil {
		return c, errNoEngine()
	}
	if c.Now.IsZero() {
		c.Now = g.opts.Now()
	}
	return c, g.claimSession(caller, name, &c)
}

// checkWorkspace refuses a missing workspace and one that is not the caller's with the same
// error. Only phase/dispatch may have none.
func (g *Gateway) checkWorkspace(ctx context.Context, c *rpc.Caller, id string) error {
	switch {
	case !c.MayWorkspace(id):
		return noWorkspace(id)
	case id == "":
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := g.opts.Tree.Doc(ctx, tree.Scope{WorkspaceID: id})
	if tree.HasCode(err, tree.CodeNotFound) {
		return noWorkspace(id)
	}
	return err
}

type namedID struct{ name, value string }

func needIDs(of, why string, ids ...namedID) error {
	for _, id := range ids {
		if id.value == "" {
			return rpc.Errorf(rpc.CodeInvalid, "%s.%s: it is missing; %s", of, id.name, why)
		}
	}
	return nil
}
