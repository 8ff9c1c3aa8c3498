package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

type (
	beginParams struct {
		Turn phases.Context `json:"turn" jsonschema:"where and when; workspace_id, thread_id and turn_id are needed. A dir must lie below one of the gateway's roots"`
		// MaxResultChars is for the loop's options.
		MaxResultChars int    `json:"max_result_chars,omitempty" jsonschema:"trims the results of the turn's tools to so many characters, with a reminder of what was cut; 0 does not"`
		Actor          string `json:"actor,omitempty"`
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
	reportParams struct {
		Handle  string                   `json:"handle"            jsonschema:"the turn, as turn/begin gave it"`
		Changes []manifest.RequestChange `json:"changes,omitempty" jsonschema:"what the request had different from the prompt's record; absent if nothing"`
		Usage   phases.Usage             `json:"usage,omitzero"    jsonschema:"what the provider reported for the request. Who knows only the sum gives it to turn/end instead"`
		Actor   string                   `json:"actor,omitempty"`
	}
	endParams struct {
		Handle string               `json:"handle"          jsonschema:"the turn, as turn/begin gave it"`
		End    phases.PostTurnInput `json:"end"             jsonschema:"how the turn ended, as the input of turn.post_turn. Without user_text, tool_events or usage it has what this gateway knows of them: the message of the first turn/compile, the calls that went through tool/call, tool/check and tool/finish, and the sum of what was reported"`
		Wait   bool                 `json:"wait,omitempty"  jsonschema:"answer only when the background work of this gateway is done"`
		Actor  string               `json:"actor,omitempty"`
	}
)

type begunTurn struct {
	Handle      string  `json:"handle"       jsonschema:"names the turn in further calls to this gateway, by the same token"`
	IdleSeconds float64 `json:"idle_seconds" jsonschema:"without a call for so long the turn is ended as interrupted"`
	InSession   bool    `json:"in_session"   jsonschema:"whether this gateway knows how the turn's session began; if not, call session/resume before the turn's first turn/compile, which then has what it brings"`
}

// compiledTurn is what "grapnel compile" prints, and what a client would else have to make of it.
type compiledTurn struct {
	*runtime.Compiled

	ReminderTexts []string `json:"reminder_texts" jsonschema:"the reminders as a model reads them: each a message to be put after the conversation, in order. They stay in the conversation: no later prompt has them again"`
	// Conversation is what the client sends after the prompt.
	Conversation *history.Window `json:"conversation,omitempty" jsonschema:"what of the thread's conversation to send after the prompt, and then the reminders; absent where the gateway keeps none, or there is no prompt. The entries of this turn so far are at its end"`
}

// For is the compiled turn as the audience may see it.
func (c *compiledTurn) For(who phases.Audience) *compiledTurn {
	shown := *c
	shown.Compiled = c.Compiled.For(who)
	return &shown
}

func newCompiledTurn(done *runtime.Compiled, err error) (*compiledTurn, error) {
	if done == nil {
		return nil, engineError(err)
	}
	c := &compiledTurn{Compiled: done, ReminderTexts: make([]string, len(done.Reminders))}
	for i := range done.Reminders {
		c.ReminderTexts[i] = sdk.Reminder(&done.Reminders[i])
	}
	return c, nil
}

// These methods look up the workspace of their turn themselves.
func (g *Gateway) turnMethods() []rpc.Method {
	return []rpc.Method{
		method(group{}, "turn/begin", rpc.DispatchRight,
			"Begins a turn and keeps it, until turn/end, or as long as calls come: what its phases bring (policies, contexts, tools, reminders) holds for the next ones. No plugin is called yet: the first turn/compile has the message judged.",
			g.begin),
		method(group{}, "turn/compile", rpc.CompileRight,
			"Compiles the prompt of a turn and records its manifest: in a kept turn (handle) that of the next round, after the phases ahead that the turn has not passed yet, with the reminders of all phases since the last prompt, each once; else (turn) as \"grapnel compile\" does. A turn that was denied, or whose phase failed closed, is a result with an error in it.",
			g.compile),
		method(group{}, "turn/dispatch", rpc.DispatchRight,
			"Runs one phase in a kept turn. One that failed closed is a result with an error in it.",
			g.dispatchInTurn),
		method(group{}, "turn/report", rpc.DispatchRight,
			"Puts on record what became of the turn's last prompt: how the request differed from it, and what the provider reported. Call it once a round.",
			g.report),
		method(group{}, "turn/end", rpc.DispatchRight,
			"Ends a kept turn, when its calls have returned: the plugins are notified, and go on in the background.",
			g.end),
	}
}

var errNoEngine = rpc.Errorf(rpc.CodeUnavailable, "this gateway has no engine: it compiles and dispatches nothing")

func (g *Gateway) begin(ctx context.Context, c call[beginParams]) (begunTurn, error) {
	where, err := g.completeTurn(ctx, c.Caller, c.params.Turn)
	if err != nil {
		return begunTurn{}, err
	}
	if c.params.MaxResultChars < 0 {
		return begunTurn{}, rpc.Errorf(rpc.CodeInvalid, "max_result_chars: it is below 0")
	}
	kept, err := g.turns.reserve(c.Caller)
	if err != nil {
		return begunTurn{}, err
	}
	turn, err := g.opts.Engine.BeginTurn(ctx, where)
	if err != nil {
		g.turns.release(kept)
		return begunTurn{}, engineError(err)
	}
	ok := g.turns.keep(c.Caller, kept, loop.Wrap(turn, loop.Options{Ask: answered, MaxResultChars: c.params.MaxResultChars}), turn.Context())
	if !ok { // the gateway stops
		g.turns.release(kept)
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

// compile answers also for a blocked turn.
func (g *Gateway) compile(ctx context.Context, c call[compileParams]) (*compiledTurn, error) {
	p := &c.params
	switch {
	case p.Handle != "" && p.Turn != nil:
		return nil, rpc.Errorf(rpc.CodeInvalid, "handle and turn are both there: give the handle of a turn that turn/begin began, or a turn that ends with its prompt")
	case p.Handle != "":
		return inTurn(ctx, g, c.Caller, p.Handle, func(ctx context.Context, k *keptTurn) (*compiledTurn, error) {
			return g.compileRound(ctx, c, k)
		})
	case p.Turn == nil:
		return nil, rpc.Errorf(rpc.CodeInvalid, "turn: it is missing; give a turn, or the handle of one that turn/begin began")
	}
	turn, err := g.completeTurn(ctx, c.Caller, *p.Turn)
	if err != nil {
		return nil, err
	}
	done, _, err := g.compileWithHistory(ctx, &turn, demand{bytes: answerBytes}, g.compileInput(&p.Input, turn.Now), func(in runtime.CompileInput) (*runtime.Compiled, error) {
		return g.opts.Engine.CompileTurn(ctx, turn, in)
	})
	return done, err
}

// compileRound compiles one round after the other. Those that wait hold no memory: what one takes is known when the one
// before has ended.
func (g *Gateway) compileRound(ctx context.Context, c call[compileParams], k *keptTurn) (*compiledTurn, error) {
	select {
	case k.round <- struct{}{}:
		defer func() { <-k.round }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	takes := demand{bytes: answerBytes + k.LedgerBytes()*manifestFactor, entries: int(k.appended.Load())}
	done, sent, err := g.compileWithHistory(ctx, &k.context, takes, g.compileInput(&c.params.Input, k.context.Now), func(in runtime.CompileInput) (*runtime.Compiled, error) {
		return k.Compile(ctx, in)
	})
	k.sent.Store(sent)
	return done, err
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

func (g *Gateway) report(ctx context.Context, c call[reportParams]) (struct{}, error) {
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (struct{}, error) {
		err := k.Used(ctx, c.params.Usage, c.params.Changes...)
		if err == nil {
			k.learn(c.params.Usage)
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
		return resultOf(g.finishTurn(ctx, kept, &c.params.End))
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

type dispatchParams struct {
	Phase   phases.Phase    `json:"phase"`
	Context phases.Context  `json:"context,omitzero" jsonschema:"where and when. A dir must lie below one of the gateway's roots"`
	Input   json.RawMessage `json:"input,omitempty"  jsonschema:"the input of the phase, as its schema has it"`
	Record  bool            `json:"record,omitempty" jsonschema:"also return what each hook was sent and answered; it needs the right admin"`
	Actor   string          `json:"actor,omitempty"`
}

// dispatched is what "grapnel dispatch --json" prints, and the exchanges where they were asked for.
type dispatched struct {
	*phases.Outcome

	Exchanges []exchanged `json:"exchanges,omitempty"         jsonschema:"what each hook was sent and answered; absent unless record asks for it"`
	Omitted   int         `json:"exchanges_omitted,omitempty" jsonschema:"how many of them would have been too long to be here"`
}

// For is the outcome as the audience may see it.
func (d *dispatched) For(who phases.Audience) *dispatched {
	shown := *d
	shown.Outcome = d.Outcome.For(who)
	return &shown
}

func (g *Gateway) dispatch(ctx context.Context, c call[dispatchParams]) (*dispatched, error) {
	in, err := phaseInput(c.params.Phase, c.params.Input)
	if err != nil {
		return nil, err
	}
	where, err := g.completeContext(ctx, c.Caller, "context", c.params.Context)
	if err != nil {
		return nil, err
	}
	list := exchanges{}
	if c.params.Record {
		if !c.May(rpc.AdminRight) {
			return nil, rpc.Errorf(rpc.CodeUnauthorized, "record needs the right %q: plugins' words are for operators", rpc.AdminRight)
		}
		ctx = runtime.WithExchanges(ctx, list.add)
	}
	out, err := resultOf(g.opts.Engine.Dispatch(ctx, where, in))
	if err != nil {
		return nil, err
	}
	all, omitted := list.all()
	return &dispatched{out, all, omitted}, nil
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
		key := "dir"
		if name == "payload" {
			key = "cwd" // as agents call it
		}
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.%s: %v", name, key, err)
	}
	if g.opts.Engine == nil {
		return c, errNoEngine
	}
	if c.Now.IsZero() {
		c.Now = g.opts.Now()
	}
	return c, g.claimSession(caller, name, &c)
}

// checkWorkspace refuses a missing workspace and one that is not the caller's with the same error. The workspace local, to
// which agents and the command line belong, is made. Only phase/dispatch may have none.
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
	switch {
	case !tree.HasCode(err, tree.CodeNotFound):
		return err
	case id != hookWorkspace:
		return noWorkspace(id)
	}
	_, err = g.opts.Tree.CreateWorkspace(ctx, tree.CreateWorkspace{ID: id, Name: id, Actor: cmp.Or(c.Name, openActor)})
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
