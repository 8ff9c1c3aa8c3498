package gateway

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// TestSessionIsItsTokens: a session belongs to the token that names it first, until that
// ends it or is gone. Another token of the workspace can neither begin, resume nor end it,
// nor name it in a turn or a phase.
func TestSessionIsItsTokens(t *testing.T) {
	t.Parallel()

	o := Options{Tree: treeOf(t, "w", "v")}
	o.Engine = engine(t, o.Tree, nil)
	rights := rpc.Rights()
	ada, bob := token("ada", []string{"w"}, rights...), token("bob", []string{"*"}, rights...)
	s := serve(t, o.with(ada, bob))
	owner, other := s.post(t, "ada"), s.post(t, "bob")
	where := object{"workspace_id": "w", "session_id": "s"}
	begin := object{"turn": turnOf(object{"session_id": "s"})}
	refused := func(c *caller) {
		t.Helper()
		for method, params := range map[string]object{
			"session/start": {"context": where}, "session/resume": {"context": where}, "session/end": {"context": where},
			"turn/begin": begin, "turn/compile": begin, "phase/dispatch": {"phase": "session.end", "context": where},
		} {
			if _, bad := c.call(t, method, params); bad.code() != rpc.CodeUnauthorized || !strings.Contains(bad.Message, `.session_id: the session "s"`) {
				t.Errorf("%s: %+v", method, bad)
			}
		}
	}
	do[any](t, owner, "session/start", object{"context": where})
	refused(other)
	if !do[begunTurn](t, owner, "turn/begin", begin).InSession {
		t.Error("the session has ended")
	}
	do[any](t, other, "session/start", object{"context": object{"workspace_id": "v", "session_id": "s"}})
	do[any](t, owner, "session/end", object{"context": where})
	do[any](t, other, "session/start", object{"context": where})
	refused(owner)
	bob.Workspaces = []string{"v"}
	if err := s.g.SetTokens([]rpc.Token{ada, bob}); err != nil {
		t.Fatal(err)
	}
	if do[begunTurn](t, owner, "turn/begin", begin).InSession {
		t.Error("the turn is in the session of a token that lost the workspace")
	}
}

// TestSessionFloodOfOneToken: a token that begins many sessions pushes out none of
// another one, in the same workspace, and the engine forgets what the gateway does.
func TestSessionFloodOfOneToken(t *testing.T) {
	t.Parallel()

	o := Options{Tree: treeOf(t, "w")}
	o.Engine = engine(t, o.Tree, nil)
	rights := rpc.Rights()
	quiet, flood := token("quiet", []string{"w"}, rights...), token("flood", []string{"w"}, rights...)
	g := must(New(o.with(quiet, flood)))(t)
	start := func(tok rpc.Token, id string) {
		t.Helper()
		params := sessionStartParams{Context: phases.Context{WorkspaceID: "w", SessionID: id}}
		must(g.startSession(t.Context(), call[sessionStartParams]{tok.Caller(nil), params}))(t)
	}
	known := func(tok rpc.Token, id string) bool {
		t.Helper()
		params := beginParams{Turn: phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", SessionID: id}}
		return must(g.begin(t.Context(), call[beginParams]{tok.Caller(nil), params}))(t).InSession
	}
	start(quiet, "mine")
	for i := range mostSessions + 10 {
		start(flood, strconv.Itoa(i))
	}
	if !known(quiet, "mine") || !known(flood, strconv.Itoa(mostSessions+9)) {
		t.Error("a session was forgotten that has a place")
	}
	if known(flood, "0") || g.sessions.owned.Len() != mostSessions {
		t.Errorf("%d sessions are known", g.sessions.owned.Len())
	}
}

// TestHugeIDsOfClients: no method keeps an id, a name of a model or metadata that is too
// long; the error names the field.
func TestHugeIDsOfClients(t *testing.T) {
	t.Parallel()

	o := Options{Tree: treeOf(t, "w")}
	o.Engine = engine(t, o.Tree, nil)
	c := serve(t, o).post(t, "")
	huge := strings.Repeat("x", 60_000)
	handle := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(nil)}).Handle
	for _, tt := range []struct {
		method string
		params object
		field  string
	}{
		{"session/start", object{"context": object{"workspace_id": "w", "session_id": huge}}, "context.session_id"},
		{"session/resume", object{"context": object{"workspace_id": "w", "session_id": huge}}, "context.session_id"},
		{"session/end", object{"context": object{"workspace_id": "w", "session_id": huge}}, "context.session_id"},
		{"turn/begin", object{"turn": turnOf(object{"turn_id": huge})}, "turn.turn_id"},
		{"turn/begin", object{"turn": turnOf(object{"workspace_id": huge})}, "turn.workspace_id"},
		{"turn/begin", object{"turn": turnOf(object{"profile": huge})}, "turn.profile"},
		{"turn/begin", object{"turn": turnOf(object{"dir": "/" + huge})}, "turn.dir"},
		{"turn/compile", object{"turn": turnOf(object{"thread_id": huge, "profile": "none"})}, "turn.thread_id"},
		{"turn/compile", object{"turn": turnOf(nil), "input": object{"model": huge}}, "model"},
		{"turn/compile", object{"handle": handle, "input": object{"provider": huge}}, "provider"},
		{"phase/dispatch", object{"phase": "turn.pre_compaction", "context": object{"agent_id": huge}}, "context.agent_id"},
		{"tool/call", object{"handle": handle, "tool": "measure", "call_id": huge}, "call_id"},
		{"tool/check", object{"handle": handle, "tool": huge}, "tool"},
		{"tool/finish", object{"handle": handle, "tool": "own", "call_id": huge, "text": ""}, "call_id"},
	} {
		if _, bad := c.call(t, tt.method, tt.params); bad.code() != rpc.CodeTooLarge || !strings.HasPrefix(bad.Message, tt.field+": it has 6000") {
			t.Errorf("%s %s: %+v", tt.method, tt.field, bad)
		}
	}
}

// largeLog is a log of manifests that are large, whose readers wait.
type largeLog struct {
	Log

	entered chan struct{}
	goOn    chan struct{}
}

func (l *largeLog) Find(context.Context, string, store.Filter) (store.Found, error) {
	return store.Found{ManifestID: "id", Bytes: 4 << 20}, nil
}

func (l *largeLog) Judge(context.Context, *manifest.Manifest) (*manifest.Usage, error) {
	return nil, nil
} //nolint:nilnil // as of a log without reports

func (l *largeLog) Get(context.Context, string) (*manifest.Manifest, error) {
	l.entered <- struct{}{}
	<-l.goOn
	return &manifest.Manifest{}, nil
}

// TestDiffOfLargeManifests: manifest/diff and manifest/get reserve memory by the size of
// what they are about to read, before they read it.
func TestDiffOfLargeManifests(t *testing.T) {
	t.Parallel()

	for method, params := range map[string]object{
		"manifest/diff": {"a": "latest", "b": "latest"}, "manifest/get": {"manifest_id": "latest"},
	} {
		log := &largeLog{entered: make(chan struct{}, 2*maxLight), goOn: make(chan struct{})}
		o := Options{Log: log}
		o.Limits.Memory, o.Limits.Body, o.Limits.Admission = 32<<20, 1<<20, time.Millisecond
		s := serve(t, o)
		var calls sync.WaitGroup
		for range 4 { // each takes the whole share of its connection, a quarter
			c := s.post(t, "")
			calls.Go(func() { do[any](t, c, method, params) })
			<-log.entered
		}
		if _, bad := s.post(t, "").call(t, "workspace/list", object{}); bad.code() != rpc.CodeOverloaded || bad.Data["share"] != "process" {
			t.Errorf("%s: %+v", method, bad)
		}
		close(log.goOn)
		calls.Wait()
	}
}

// TestResumeBehindBegin: what the resume of a session brings is in the first prompt of a turn that began before it, once.
func TestResumeBehindBegin(t *testing.T) {
	t.Parallel()

	resumed := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "back", Kinds: []phases.Kind{phases.KindReminder, phases.KindPromptContext}, Needs: []string{phases.NeedsNothing},
		SessionResume: func(context.Context, *sdk.Call, *phases.SessionResumeInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Reminder{Type: "back", Text: "a file changed"}, &phases.PromptContext{Content: "the user was away"})
		},
	}}}
	tree := treeOf(t, "w")
	s := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, logStore(t), time.Now, resumed)})
	c := s.post(t, "")
	for i, want := range []string{"1", "0"} {
		where := object{"workspace_id": "w", "thread_id": "t", "turn_id": want, "session_id": "s"}
		begun := do[begunTurn](t, c, "turn/begin", object{"turn": where})
		if begun.InSession != (i > 0) {
			t.Errorf("turn %d: in_session %t", i, begun.InSession)
		}
		if !begun.InSession {
			do[any](t, c, "session/resume", object{"context": object{"workspace_id": "w", "session_id": "s"}})
		}
		done := do[compiledTurn](t, c, "turn/compile", object{"handle": begun.Handle})
		if got := strconv.Itoa(len(done.ReminderTexts)); got != want || !strings.Contains(done.Prompt.FullText, "the user was away") {
			t.Errorf("turn %d has %s reminders, and the prompt %q", i, got, done.Prompt.FullText)
		}
		do[any](t, c, "turn/end", object{"handle": begun.Handle, "end": object{"status": "succeeded"}})
	}
}
