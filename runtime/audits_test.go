package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

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

// audits are the events of all records, as "kind turn phase kind".
func (s *memorySink) audits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []string{}
	for _, m := range s.records {
		for _, a := range m.Audits {
			list = append(list, fmt.Sprintf("%s %s/%s %s %s", m.Kind, m.ThreadID, m.TurnID, a.Phase, a.EventKind))
		}
	}
	return list
}

// TestAudits: each audit stands in one record of the chain, and what is not safe for users is nowhere.
func TestAudits(t *testing.T) {
	t.Parallel()

	h, sink := auditor(), &memorySink{}
	var told journal
	h.opts.Sink = sink
	h.opts.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventAudit {
			told.add(ev.Code + " " + ev.Detail)
		}
	}
	eng := h.start(t)
	done := prompted(t)(eng.CompileTurn(t.Context(), host(), runtime.CompileInput{}))
	const details, size = `{"a":"secret","b":1}`, 20
	row := func(phase phases.Phase, hook, kind string) manifest.Audit {
		return manifest.Audit{Phase: phase, Plugin: "p", PluginVersion: "1.0.0", SubscriptionID: "p." + hook, EventKind: kind, DetailsBytes: size}
	}
	policed, compiled := row(phases.PrePolicy, "policy", "policed"), row(phases.PrePromptCompile, "section", "compiled")
	policed.Details, compiled.DetailsHash = raw(details), manifest.Hash(details, nil)
	for i := range done.Manifest.Audits {
		hash := &done.Manifest.Audits[i].ContributionHash
		if !slices.ContainsFunc(done.Manifest.HookSources, func(h phases.HookSource) bool { return h.ContributionHash == *hash }) {
			t.Errorf("no source has the hash %q", *hash)
		}
		*hash = ""
	}
	checkSame(t, "in the manifest", done.Manifest.Audits, []manifest.Audit{policed, compiled})
	if diff := cmp.Diff(done.Manifest.Hash, sink.records[0].Hash); diff != "" {
		t.Errorf("the one that was kept is another: %s", diff)
	}
	turn := beginAt(t, eng, phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "2", SessionID: "s"})
	outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
	outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "x"}))
	outcome(t)(turn.End(t.Context(), nil))
	waitBackground(t, eng)
	dispatch(t, eng, &phases.PrePolicyInput{})
	want := []string{
		"events t/1 turn.pre_policy policed", "events t/2 tool.pre_call guarded", "events t/2 turn.post_turn observed", "events t/2 turn.pre_policy policed",
		"prompt t/1 turn.pre_policy policed", "prompt t/1 turn.pre_prompt_compile compiled",
	}
	checkSame(t, "in the records", sorted(sink.audits()), want)
	for _, line := range told.all() {
		kind, said, _ := strings.Cut(line, " ")
		if safe := kind == "policed" || kind == "guarded"; strings.Contains(said, "secret") != safe {
			t.Errorf("told %q", line)
		}
	}
}

// TestAuditsOfLostRecords: what a record held that was not kept stands in the next one; and floods are counted.
func TestAuditsOfLostRecords(t *testing.T) {
	t.Parallel()

	h, sink := auditor(), &memorySink{}
	sink.before = failingAt("Append", errors.New("disk full"))
	var j journal
	h.opts.Sink, h.opts.OnEvent = sink, j.events(runtime.EventManifest)
	eng := h.start(t)
	turn := beginAt(t, eng, host())
	prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
	sink.before = nil
	outcome(t)(turn.End(t.Context(), nil))
	waitBackground(t, eng)
	want := []string{"events t/1 turn.post_turn observed", "events t/1 turn.pre_policy policed", "events t/1 turn.pre_prompt_compile compiled"}
	checkSame(t, "kept", sorted(sink.audits()), want)
	checkSame(t, "told", j.all(), []string{"not_kept unavailable"})

	var many []phases.Contribution
	for n := range 200 {
		many = append(many, &phases.Audit{EventKind: fmt.Sprint("kind_", n)})
	}
	h = newHosted(plugin("p", on("guard", phases.ToolPreCall, reply(many...), phases.KindAudit), on("guards", phases.ToolPreCall, reply(many...), phases.KindAudit)))
	sink = &memorySink{}
	h.opts.Sink = sink
	dispatch(t, h.start(t), &phases.ToolPreCallInput{Tool: "x"})
	if m := sink.records[0]; len(m.Audits) != 256 || !slices.ContainsFunc(m.Diagnostics, func(d manifest.Diagnostic) bool {
		return d.Code == "audits_not_kept" && strings.HasPrefix(d.Message, "144 ") && d.Severity == phases.SeverityError
	}) {
		t.Errorf("kept %d audits; %+v", len(m.Audits), m.Diagnostics)
	}
}
