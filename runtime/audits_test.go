package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// auditSink is a memorySink that keeps audits too.
type auditSink struct {
	memorySink

	events struct {
		sync.Mutex
		list []manifest.AuditEvent
	}
}

var _ runtime.AuditSink = (*auditSink)(nil)

// KeepAudits implements runtime.AuditSink.
func (s *auditSink) KeepAudits(ctx context.Context, events []manifest.AuditEvent) error {
	if err := s.called(ctx, "KeepAudits"); err != nil {
		return err
	}
	s.events.Lock()
	defer s.events.Unlock()
	s.events.list = append(s.events.list, events...)
	return nil
}

// kinds are the events that were kept, as "turn phase kind".
func (s *auditSink) kinds() []string {
	s.events.Lock()
	defer s.events.Unlock()
	list := []string{}
	for _, e := range s.events.list {
		list = append(list, fmt.Sprintf("%s/%s %s %s", e.ThreadID, e.TurnID, e.Phase, e.EventKind))
	}
	return list
}

// auditing is a hook that brings an audit event, whose details hold a word that users
// may or may not see.
func auditing(kind string, safe bool) handler {
	return reply(&phases.Audit{EventKind: kind, Details: raw(`{"b":1,"a":"secret"}`), SafeForUser: safe})
}

// auditor is a plugin that brings one in each of several phases.
func auditor() *hosted {
	return newHosted(plugin("p",
		on("policy", phases.PrePolicy, auditing("policed", true), phases.KindAudit),
		on("section", phases.PrePromptCompile, auditing("compiled", false), phases.KindAudit),
		on("guard", phases.ToolPreCall, auditing("guarded", true), phases.KindAudit),
		on("end", phases.PostTurn, auditing("observed", false), phases.KindAudit),
	))
}

// TestAudits: those before a prompt stand in its manifest, later ones are kept beside
// it, and what is not safe for users is nowhere.
func TestAudits(t *testing.T) {
	t.Parallel()

	h, sink := auditor(), &auditSink{}
	var told journal
	h.opts.Sink = sink
	h.opts.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventAudit {
			told.add(ev.Code + " " + ev.Detail)
		}
	}
	eng := h.start(t)
	done, err := eng.CompileTurn(t.Context(), host(), runtime.CompileInput{})
	if err != nil {
		t.Fatal(err)
	}
	const details, size = `{"a":"secret","b":1}`, 20
	row := func(phase phases.Phase, hook, kind string) manifest.Audit {
		return manifest.Audit{Phase: phase, Plugin: "p", PluginVersion: "1.0.0", SubscriptionID: "p." + hook, EventKind: kind, DetailsBytes: size}
	}
	policed, compiled := row(phases.PrePolicy, "policy", "policed"), row(phases.PrePromptCompile, "section", "compiled")
	policed.Details, compiled.DetailsFingerprint = raw(details), manifest.Fingerprint(details, nil)
	for i := range done.Manifest.Audits {
		hash := &done.Manifest.Audits[i].ContributionHash
		if !slices.ContainsFunc(done.Manifest.HookSources, func(h phases.HookSource) bool { return h.ContributionHash == *hash }) {
			t.Errorf("no source has the hash %q", *hash)
		}
		*hash = ""
	}
	if diff := cmp.Diff([]manifest.Audit{policed, compiled}, done.Manifest.Audits); diff != "" {
		t.Errorf("in the manifest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(done.Manifest.Hash, sink.records[0].Hash); diff != "" {
		t.Errorf("the one that was kept is another: %s", diff)
	}
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}

	turn, err := eng.BeginTurn(t.Context(), phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "2", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	outcome(t)(turn.PrePolicy(t.Context(), &phases.PrePolicyInput{}))
	outcome(t)(turn.ToolPreCall(t.Context(), &phases.ToolPreCallInput{Tool: "x"}))
	if diff := cmp.Diff([]string{"t/2 tool.pre_call guarded"}, sink.kinds()); diff != "" {
		t.Errorf("during the turn (-want +got):\n%s", diff)
	}
	outcome(t)(turn.End(t.Context(), nil))
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
	dispatch(t, eng, &phases.PrePolicyInput{})
	want := []string{"t/1 turn.pre_policy policed", "t/2 tool.pre_call guarded", "t/2 turn.post_turn observed", "t/2 turn.pre_policy policed"}
	if diff := cmp.Diff(want, sorted(sink.kinds())); diff != "" {
		t.Errorf("beside manifests (-want +got):\n%s", diff)
	}
	for _, e := range sink.events.list {
		safe := e.EventKind != "observed"
		if (string(e.Details) == details) != safe || (e.DetailsFingerprint == "") != safe || e.WorkspaceID != "w" || e.At.IsZero() || e.ContributionHash == "" {
			t.Errorf("kept %+v", e)
		}
	}
	if got := eng.Stats(); got.AuditsKept != 4 || got.AuditsNotKept != 0 {
		t.Errorf("stats %+v", got)
	}
	for _, line := range told.all() {
		kind, said, _ := strings.Cut(line, " ")
		if safe := kind == "policed" || kind == "guarded"; strings.Contains(said, "secret") != safe {
			t.Errorf("told %q", line)
		}
	}
}

// TestAuditsLost: events that cannot be kept, and floods of them, are counted and told
// where somebody looks.
func TestAuditsLost(t *testing.T) {
	t.Parallel()

	h, sink := auditor(), &auditSink{}
	sink.before = failingAt("KeepAudits", errors.New("disk full"))
	var j journal
	h.opts.Sink, h.opts.OnEvent = sink, j.events(runtime.EventManifest)
	eng := h.start(t)
	out := dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
	if !slices.ContainsFunc(out.Diagnostics, func(d phases.Diagnostic) bool {
		return d.Code == "audits_not_kept" && d.SafeForUser && d.Severity == phases.SeverityError
	}) {
		t.Errorf("diagnostics %+v", out.Diagnostics)
	}
	if diff := cmp.Diff([]string{"audits_not_kept unavailable"}, j.all()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if got := eng.Stats(); got.AuditsKept != 0 || got.AuditsNotKept != 1 {
		t.Errorf("stats %+v", got)
	}

	var many []phases.Contribution
	for n := range 200 {
		many = append(many, &phases.Audit{EventKind: fmt.Sprint("kind_", n)})
	}
	flood := func(name string, phase phases.Phase) sdk.Hook {
		return on(name, phase, reply(many...), phases.KindAudit)
	}
	h = newHosted(plugin("p",
		flood("guard", phases.ToolPreCall), flood("guards", phases.ToolPreCall), flood("policy", phases.PrePolicy), flood("policies", phases.PrePolicy),
	))
	sink = &auditSink{}
	h.opts.Sink = sink
	eng = h.start(t)
	dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
	done, err := eng.CompileTurn(t.Context(), host(), runtime.CompileInput{})
	if err != nil {
		t.Fatal(err)
	}
	if got := eng.Stats(); len(sink.kinds()) != 256 || got.AuditsKept != 256 || len(done.Manifest.Audits) != 256 || got.AuditsNotKept != 2*(400-256) {
		t.Errorf("kept %d beside and %d in the manifest; %+v", len(sink.kinds()), len(done.Manifest.Audits), got)
	}

	// A sink that does not want them is not asked, and nothing is lost.
	h, plain := auditor(), &memorySink{}
	h.opts.Sink = plain
	eng = h.start(t)
	dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
	if got := eng.Stats(); got.AuditsNotKept != 0 {
		t.Errorf("without a sink for them: %+v", got)
	}
}

// TestAuditsLabels: an operator who wants no texts in manifests has no details either.
func TestAuditsLabels(t *testing.T) {
	t.Parallel()

	h, sink := auditor(), &auditSink{}
	h.cfg.Manifest.Labels = "hash"
	h.opts.Sink = sink
	eng := h.start(t)
	done, err := eng.CompileTurn(t.Context(), host(), runtime.CompileInput{})
	if err != nil {
		t.Fatal(err)
	}
	dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
	for _, a := range append(done.Manifest.Audits, sink.events.list[0].Audit) {
		if len(a.Details) > 0 || a.DetailsFingerprint == "" || a.DetailsBytes == 0 {
			t.Errorf("kept %+v", a)
		}
	}
}
