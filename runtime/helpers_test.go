package runtime_test

import (
	gocmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// allGrants allows everything.
func allGrants() phases.Grants {
	all := []string{"*"}
	return phases.Grants{
		Contribute: all, Sections: all, StableSections: all, Policies: all, Domains: all, Tools: all, Host: all, See: all,
	}
}

// hosted is an engine with plugins inside the host.
type hosted struct {
	cfg  config.Config
	opts runtime.Options
	// hurried keeps the default times, which a busy machine may exceed, outside of a bubble with a clock of its own.
	hurried bool
}

// newHosted declares each plugin under its own name with all grants.
func newHosted(plugins ...*sdk.Plugin) *hosted {
	h := &hosted{cfg: config.Config{Version: 1}, opts: runtime.Options{Logger: slog.New(slog.DiscardHandler), InProcess: map[string]runtime.Plugin{}}}
	for _, p := range plugins {
		h.cfg.Plugins = append(h.cfg.Plugins, config.Plugin{Name: p.Name, Grants: allGrants()})
		h.opts.InProcess[p.Name] = p
	}
	return h
}

// plugin returns the declaration of a plugin, to be changed before start.
func (h *hosted) plugin(name string) *config.Plugin {
	for i := range h.cfg.Plugins {
		if h.cfg.Plugins[i].Name == name {
			return &h.cfg.Plugins[i]
		}
	}
	panic("no plugin " + name)
}

// override changes a subscription as an operator does.
func (h *hosted) override(id string, o phases.Override) *hosted {
	name, _, _ := strings.Cut(id, ".")
	p := h.plugin(name)
	if p.Subscriptions == nil {
		p.Subscriptions = map[string]phases.Override{}
	}
	p.Subscriptions[id] = o
	return h
}

// phase sets the budget of a phase.
func (h *hosted) phase(p phases.Phase, b config.PhaseBudget) *hosted {
	if h.cfg.Budgets.Phases == nil {
		h.cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	}
	h.cfg.Budgets.Phases[p] = b
	return h
}

// start makes the engine and closes it at the end of the test.
func (h *hosted) start(t testing.TB) *runtime.Engine {
	t.Helper()
	if inBubble := time.Now().Year() == 2000; !inBubble && !h.hurried {
		h.takeTime()
	}
	eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { closeEngine(t, eng) })
	return eng
}

// takeTime gives phases and hooks more time than a busy machine needs, where the test sets none.
func (h *hosted) takeTime() {
	h.cfg.Budgets.Turn.Time = gocmp.Or(h.cfg.Budgets.Turn.Time, phases.Duration(10*generous))
	if len(h.cfg.Budgets.Phases) > 0 {
		return
	}
	for _, row := range phases.Standard().Rows() {
		if !row.Queue {
			h.phase(row.Phase, budget(generous))
		}
	}
	for _, p := range h.opts.InProcess {
		if p, ok := p.(*sdk.Plugin); ok {
			for i := range p.Hooks {
				p.Hooks[i].Timeout = gocmp.Or(p.Hooks[i].Timeout, generous)
			}
		}
	}
}

// handler is a hook's handler, whatever its phase.
type handler = sdk.Handler[phases.Input]

// on is a hook of any phase that declares the given kinds.
func on(name string, phase phases.Phase, h handler, kinds ...phases.Kind) sdk.Hook {
	return sdk.Hook{Name: name, Phase: phase, Any: h, Kinds: kinds}
}

// reply answers with contributions.
func reply(cs ...phases.Contribution) handler {
	return func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) { return cs, nil }
}

// failing answers with an error.
func failing(err error) handler {
	return func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) { return nil, err }
}

// taking answers after d, or when it is cancelled.
func taking(d time.Duration, cs ...phases.Contribution) handler {
	return func(ctx context.Context, _ *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		select {
		case <-time.After(d):
			return cs, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// deaf answers when it is released, whatever its context says.
func deaf(release <-chan struct{}) handler {
	return func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
		<-release
		return nil, nil
	}
}

// section is a hook that contributes one section.
func section(name, id, content string) sdk.Hook {
	return sdk.Hook{
		Name: name, Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: id, Title: id, Content: content})
		},
	}
}

// deny, ask and allow are decisions.
func deny(reason string) phases.Contribution {
	return &phases.Decision{Verdict: phases.VerdictDeny, Reason: reason, ReasonCode: "house"}
}

func ask(reason string) phases.Contribution {
	return &phases.Decision{Verdict: phases.VerdictAsk, Reason: reason}
}

func allow() phases.Contribution { return &phases.Decision{Verdict: phases.VerdictAllow} }

// plugin is a plugin of some hooks.
func plugin(name string, hooks ...sdk.Hook) *sdk.Plugin {
	return &sdk.Plugin{Name: name, Version: "1.0.0", Hooks: hooks}
}

// host is the context of the tests' dispatches.
func host() phases.Context {
	return phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
}

// inputOf is an empty input of a phase.
func inputOf(t testing.TB, p phases.Phase) phases.Input {
	t.Helper()
	row, ok := phases.Standard().Lookup(p)
	if !ok {
		t.Fatalf("no phase %s", p)
	}
	return row.NewInput()
}

// dispatch runs a phase outside any turn. A phase that failed gives its outcome
// too; another error ends the test.
func dispatch(t testing.TB, eng *runtime.Engine, in phases.Input) *phases.Outcome {
	t.Helper()
	return outcome(t)(eng.Dispatch(t.Context(), host(), in))
}

// outcome checks that a failed phase hands out its outcome both ways.
func outcome(t testing.TB) func(*phases.Outcome, error) *phases.Outcome {
	t.Helper()
	return func(out *phases.Outcome, err error) *phases.Outcome {
		t.Helper()
		if err == nil {
			return out
		}
		failed, ok := errors.AsType[*runtime.PhaseError](err)
		if !ok {
			t.Fatalf("dispatch: %v", err)
		}
		if failed.Outcome != out || out.Error == nil || phases.CodeOf(err) != out.Error.Code {
			t.Fatalf("the error %v does not hold the outcome %+v", err, out)
		}
		return out
	}
}

// prompted is the result of a compilation that must succeed.
func prompted(t testing.TB) func(*runtime.Compiled, error) *runtime.Compiled {
	t.Helper()
	return func(done *runtime.Compiled, err error) *runtime.Compiled {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
}

// errorOf is the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// onStart makes a plugin do something when it is configured.
func onStart(p *sdk.Plugin, do func(ctx context.Context) error) *sdk.Plugin {
	p.OnConfigure = func(ctx context.Context, _ *phases.Configuration) (sdk.Setup, error) { return sdk.Setup{}, do(ctx) }
	return p
}

// neverUp is a start that never succeeds.
func neverUp(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// reload puts a configuration in force.
func reload(t testing.TB, eng *runtime.Engine, cfg *config.Config) {
	t.Helper()
	if err := eng.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// startSession starts the session of a context.
func startSession(t testing.TB, eng *runtime.Engine, c phases.Context) *runtime.Session {
	t.Helper()
	session, err := eng.StartSession(t.Context(), c, "startup")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// waitBackground waits for background work.
func waitBackground(t testing.TB, eng *runtime.Engine) {
	t.Helper()
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// runOf returns the ledger's row of a subscription.
func runOf(t testing.TB, out *phases.Outcome, id string) phases.Run {
	t.Helper()
	for _, r := range out.Runs {
		if r.Subscription == id {
			return r
		}
	}
	t.Fatalf("no run of %s in %v", id, out.Runs)
	return phases.Run{}
}

// states writes the ledger of a phase down.
func states(out *phases.Outcome) []string { return rowsOf(out.Runs) }

// codes lists the diagnostics of an outcome: "code subscription" each.
func codes(out *phases.Outcome) []string {
	lines := []string{}
	for _, d := range out.Diagnostics {
		lines = append(lines, strings.TrimSpace(d.Code+" "+d.Subscription))
	}
	return lines
}

// errorCode is why a phase failed; "" if it did not.
func errorCode(out *phases.Outcome) string {
	if out.Error == nil {
		return ""
	}
	return strings.TrimSpace(string(out.Error.Code) + " " + out.Error.Subscription)
}

// sectionIDs lists the merged sections.
func sectionIDs(out *phases.Outcome) []string {
	ids := []string{}
	for _, s := range out.Merged.Sections {
		ids = append(ids, s.SectionID)
	}
	return ids
}

// journal notes what happened, in order, from any goroutine.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// noting writes a line down and then does what h does.
func (j *journal) noting(line string, h handler) handler {
	return func(ctx context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		j.add(line)
		return h(ctx, c, in)
	}
}

// events collects the engine's events of one kind as "plugin state code".
func (j *journal) events(kind runtime.EventKind) func(runtime.Event) {
	return func(e runtime.Event) {
		if e.Kind == kind {
			j.add(strings.Join(strings.Fields(e.Plugin+" "+e.State+" "+e.Code), " "))
		}
	}
}

// checkSame reports how what a test got differs from what it wants.
func checkSame(t testing.TB, what string, got, want any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(got, want, opts...); diff != "" {
		t.Errorf("%s (-got +want):\n%s", what, diff)
	}
}

// raw is embedded JSON.
func raw(s string) json.RawMessage { return json.RawMessage(s) }

// word is a failure policy of one word.
func word(w phases.FailureWord) phases.OnFailure { return phases.OnFailure{Default: w} }

// sorted returns a sorted copy.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// requiring is a phase that requires subscriptions.
func requiring(ids ...string) config.PhaseBudget { return config.PhaseBudget{Require: ids} }

// generous bounds what takes a moment: a test that waits longer is broken.
const generous = 30 * time.Second

// closeEngine closes an engine.
func closeEngine(t testing.TB, eng *runtime.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	if err := eng.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// contentOf is the text of a merged section, "" if there is none.
func contentOf(out *phases.Outcome, id string) string {
	for _, s := range out.Merged.Sections {
		if s.SectionID == id {
			return s.Content
		}
	}
	return ""
}
