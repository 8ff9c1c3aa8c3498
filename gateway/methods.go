package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

const callTime = 20 * time.Second // bounds a call of the tree or the log. Turns have budgets of their own

const docsBytes = 1 << 20 // the JSON of the two longest documents: the most that some calls answer

const openActor = "local" // the actor on a gateway without tokens if the params name nobody

type call[P any] struct {
	*rpc.Caller

	params P
}

// group is what methods have in common. The zero value is for turns, which have budgets of their own.
type group struct {
	bytes  int           // of memory that a call reserves besides what it reserves itself
	within time.Duration // bounds a call; 0 does not
	// missing says what the gateway lacks for these methods; empty if it has everything.
	missing string
	// everywhere is for methods about all workspaces, optional for those that may be: then a token that is bound to
	// workspaces must name one. With home, no workspace is the workspace local.
	everywhere, optional, home bool
	connected                  bool // the call needs a connection that notifications can come over
}

// quick is the group of methods that make calls of a database.
func quick() group { return group{bytes: docsBytes, within: callTime} }

// unless returns the group of methods that need a part of the gateway.
func (of group) unless(missing bool, text string) group {
	if missing {
		of.missing = text
	}
	return of
}

// method makes a row of the table. Params with a field WorkspaceID require access to that workspace; a field Actor is
// filled in. A result with a method For is reduced to what the caller may see: plugins' own messages are for operators.
func method[P, R any](of group, name string, right rpc.Right, doc string, do func(ctx context.Context, c call[P]) (R, error)) rpc.Method {
	return rpc.Typed(name, right, doc, func(ctx context.Context, c *rpc.Caller, p P) (R, error) {
		var none R
		if err := of.check(ctx, c, &p); err != nil {
			return none, wireError(err)
		}
		if of.within > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, of.within)
			defer cancel()
		}
		r, err := do(ctx, call[P]{c, p})
		if err != nil {
			return none, wireError(err)
		}
		if words, ok := any(r).(interface{ For(a phases.Audience) R }); ok {
			audience := phases.AudienceUser
			if c.May(rpc.AdminRight) {
				audience = phases.AudienceOperator
			}
			r = words.For(audience)
		}
		return r, nil
	})
}

func (of group) check(ctx context.Context, c *rpc.Caller, params any) error {
	if id := textField(params, "WorkspaceID"); id != nil {
		if of.home {
			*id = cmp.Or(*id, hookWorkspace)
		}
		switch {
		case of.optional && *id == "" && !c.AllWorkspaces():
			return rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces: give the workspace_id")
		case !c.MayWorkspace(*id):
			return noWorkspace(*id)
		}
	}
	switch {
	case of.everywhere && !c.AllWorkspaces():
		return rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces, and this is about all of them")
	case of.missing != "":
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: of.missing}
	case of.connected && c.Conn == nil:
		return rpc.Errorf(rpc.CodeInvalid, "watching needs a WebSocket connection (/ws): an HTTP POST has no notifications")
	}
	if err := settleActor(c, textField(params, "Actor")); err != nil || of.bytes == 0 {
		return err
	}
	return rpc.Expect(ctx, of.bytes)
}

func textField(params any, name string) *string {
	v := reflect.ValueOf(params).Elem().FieldByName(name)
	if !v.IsValid() {
		return nil
	}
	p, _ := reflect.TypeAssert[*string](v.Addr())
	return p
}

// settleActor makes the actor the token's name. Only without tokens the params decide.
func settleActor(c *rpc.Caller, actor *string) error {
	switch {
	case !c.Open:
		if *actor != "" && *actor != c.Name {
			return rpc.Errorf(rpc.CodeInvalid, "actor: the token says %q; omit it", c.Name)
		}
		*actor = c.Name
	case *actor == "":
		*actor = openActor
	}
	return tree.CheckActor(*actor)
}

type anyone struct {
	Actor string `json:"actor,omitempty"`
}

// limitOf is the limit of a list that was given, or the one for none.
func limitOf(given, absent, most int) (int, error) {
	limit := cmp.Or(given, absent)
	return limit, checkCount("limit", limit, most)
}

func checkCount(name string, n, most int) error {
	if n < 1 || n > most {
		return rpc.Errorf(rpc.CodeInvalid, "%s: %d is not between 1 and %d", name, n, most)
	}
	return nil
}

// methods lists all methods in the order of the documents. Those that only read are admitted a few at a time.
func (g *Gateway) methods() []rpc.Method {
	o := &g.opts
	trees := treeMethods{o.Tree, g.hub, g.metrics, &g.settings, g.deleted}
	all := slices.Concat(
		trees.list(), trees.docs(),
		g.turnMethods(), g.toolMethods(), g.mcpMethods(), g.hookMethods(), g.conversationMethods(), g.sessionMethods(),
		(&manifestMethods{o.Log, o.Engine, g.kept}).list(), jobMethods(o.Jobs), memoryMethods(o.Memories), eventMethods(o.Events),
		g.backtestMethods(), g.operatorMethods())
	reads, verifies := newLane(maxLight), newLane(maxVerifies)
	for i, m := range all {
		switch {
		case m.Name == methodVerify || m.Name == methodStats:
			all[i] = verifies.admit(m)
		case m.Right == rpc.ReadRight || m.Name == methodEntries:
			all[i] = reads.admit(m)
		}
	}
	return all
}

// wireTypes are the schemas of types whose JSON reflection does not see.
func wireTypes() (api.Schemas, error) {
	own := api.Schemas{}
	maps.Copy(own, api.Schemas{
		reflect.TypeFor[tree.FolderID](): {Types: []string{"null", "string"}, Description: "a folder's id; null is the root"},
		reflect.TypeFor[[]byte]():        {Type: "string", ContentEncoding: "base64"},
	})
	api.AddWords(own, history.RoleUser, history.RoleAssistant, history.RoleTool)
	api.AddWords(own, history.CompactNone, history.CompactStart, history.CompactNow)
	api.AddWords(own, tree.Draft, tree.Active, tree.Archived)
	api.AddWords(own, tree.Autosave, tree.Manual, tree.Archive, tree.Restore)
	api.AddWords(own, tree.AllThreads, tree.NoThreads)
	api.AddWords(own, ReloadSignal, ReloadWatch, ReloadCall)
	api.AddWords(own, tree.Created, tree.Renamed, tree.Moved, tree.Deleted, tree.DocSaved, tree.DocArchived, tree.DocRestored, actionGap)
	return api.NewSchemas(own)
}

// How many client calls read the database at once. A store has eight connections for reading;
// two are always free for turns.
const (
	maxReads    = 6
	maxVerifies = 2 // beside other reads
	maxLight    = maxReads - maxVerifies
)

const laneWait = 5 * time.Second // how long a call waits for a slot

// lane bounds how many calls of a kind run at once. A token gets half of the slots.
type lane struct {
	slots  chan struct{}
	tokens sync.Map // maps a token's name to its slots (chan struct{})
}

func newLane(slots int) *lane { return &lane{slots: make(chan struct{}, slots)} }

func (l *lane) admit(m rpc.Method) rpc.Method {
	call := m.Call
	m.Call = func(ctx context.Context, c *rpc.Caller, params json.RawMessage) (any, error) {
		leave, err := l.enter(ctx, c)
		if err != nil {
			return nil, err
		}
		defer leave()
		return call(ctx, c, params)
	}
	return m
}

var errBusy = &rpc.Error{
	Code: rpc.CodeOverloaded, Data: map[string]any{"share": "calls", "retry_after_ms": laneWait.Milliseconds()},
	Message: "too many calls of this kind are running: wait for the answers to earlier ones, then try again",
}

// enter waits for a slot. The caller must call leave.
func (l *lane) enter(ctx context.Context, c *rpc.Caller) (leave func(), err error) {
	needed := []chan struct{}{l.slots}
	if !c.Open {
		own, _ := l.tokens.LoadOrStore(c.Name, make(chan struct{}, max(1, cap(l.slots)/2)))
		needed = []chan struct{}{own.(chan struct{}), l.slots} //nolint:forcetypeassert // nothing else is stored
	}
	taken := 0
	leave = func() {
		for _, slots := range needed[:taken] {
			<-slots
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, laneWait, errBusy)
	defer cancel()
	for _, slots := range needed {
		select {
		case slots <- struct{}{}:
			taken++
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // even if both were ready
			leave()
			return nil, wireError(context.Cause(ctx))
		}
	}
	return leave, nil
}

// wireError turns a failure into the client's error. Package rpc logs other errors and hides their text.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*tree.Error](err); ok {
		return treeError(e)
	}
	if e, ok := errors.AsType[*store.Error](err); ok {
		return storeError(e)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the call took too long; try again", Err: err}
	case errors.Is(err, context.Canceled):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the call was abandoned: the gateway is stopping, or the caller is gone", Err: err}
	case errors.Is(err, runtime.ErrNothingCompiled):
		return &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error() + ": call turn/compile", Err: err}
	case errors.Is(err, runtime.ErrClosed):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the engine is closed: the gateway is stopping", Err: err}
	case errors.Is(err, manifest.ErrKeyNeeded):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the log is keyed, and the gateway has no key; see manifest.chain_key and manifest.fingerprint_key in its configuration", Err: err}
	default:
		return err
	}
}

func treeError(e *tree.Error) *rpc.Error {
	out := &rpc.Error{Code: string(e.Code), Message: e.Message, Err: e.Err}
	if e.Code == tree.CodeUnavailable {
		out.Message = "the database is out of reach; try again" // its text is for operators
		out.Err = e
	}
	if c := e.Conflict; c != nil {
		out.Data = map[string]any{
			"expected_version": c.ExpectedVersion, "actual_version": c.ActualVersion, "actual_doc_id": c.ActualDocID,
			"actual_content_sha256": c.ActualContentSHA256, "updated_by": c.UpdatedBy, "updated_at": c.UpdatedAt,
		}
	}
	return out
}

func storeError(e *store.Error) error {
	switch e.Code {
	case store.CodeNotFound:
		return &rpc.Error{Code: rpc.CodeNotFound, Message: "there is no such manifest", Err: e}
	case store.CodeAmbiguous, store.CodeInvalid:
		return &rpc.Error{Code: rpc.CodeInvalid, Message: e.Message, Err: e}
	case store.CodeKey:
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the log is keyed, and the gateway has no key", Err: e}
	case store.CodeLocked, store.CodeFull, store.CodePermission, store.CodeUnreachable:
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the log is out of reach; try again", Err: e}
	default:
		return e
	}
}

// engineError is the error of a phase that did not begin; later errors are in the outcome.
func engineError(err error) error {
	if e, ok := errors.AsType[*phases.Error](err); ok {
		switch e.Code {
		case phases.CauseTurnNeeded:
			return &rpc.Error{Code: rpc.CodeTurnNeeded, Message: e.Error() + ": call turn/begin, then turn/compile or turn/dispatch", Err: err}
		case phases.CauseOversizeRequest, phases.CauseBudgetExhausted:
			return &rpc.Error{Code: rpc.CodeTooLarge, Message: e.Message, Err: err}
		default:
			return &rpc.Error{Code: rpc.CodeInvalid, Message: e.Error(), Err: err}
		}
	}
	return wireError(err)
}

// noWorkspace is the same for a missing workspace and one that is not the caller's.
func noWorkspace(id string) error {
	if id == "" {
		return rpc.Errorf(rpc.CodeInvalid, "workspace_id: it is missing")
	}
	return rpc.Errorf(rpc.CodeNotFound, "there is no workspace %q", id)
}

func noManifest() error { return rpc.Errorf(rpc.CodeNotFound, "there is no such manifest") }
