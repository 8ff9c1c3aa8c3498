package merge_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// prio sets a contribution's own priority.
func prio[T phases.Contribution](c T, priority int) T {
	c.Head().Priority = priority
	return c
}

// lost lists conflicts as "loser -> other: slot".
func lost(r merge.Result) []string {
	var out []string
	for _, d := range r.Diagnostics {
		if d.Code == "conflict" {
			out = append(out, d.Subscription+" -> "+d.OtherSubscription+": "+d.Slot)
		}
	}
	return out
}

// omitted lists what was omitted as "id of owner: reason".
func omitted(r merge.Result) []string {
	var out []string
	for _, l := range r.Omitted {
		out = append(out, l.ID+" of "+l.Owner+": "+l.Reason)
	}
	return out
}

func TestPolicies(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name      string
		turn      []phases.PolicyEntry
		replies   []gave
		want      string // of the dispatch: "domain/key=value at priority of owner"
		conflicts string
		omitted   string
	}{
		{
			name: "stronger subscription", replies: []gave{by(ranked("a.h", 1), policy("d", "k", "1")), by(ranked("b.h", 2), policy("d", "k", "2"))},
			want: "d/k=2 at 2 of b.h", omitted: "a.h#0 of a: outranked",
		},
		{
			name: "stronger contribution", replies: []gave{by(ranked("a.h", 1), policy("d", "k", "1")), by(ranked("b.h", 1), prio(policy("d", "k", "2"), 5))},
			want: "d/k=2 at 1 of b.h", omitted: "a.h#0 of a: outranked",
		},
		{
			name: "equal priorities, other value", replies: []gave{by(ranked("a.h", 1), policy("d", "k", `"secret1"`)), by(ranked("b.h", 1), policy("d", "k", `"secret2"`))},
			want: `d/k="secret1" at 1 of a.h`, conflicts: "b.h -> a.h: d/k", omitted: "b.h#0 of b: conflict",
		},
		{
			name: "two conflicts of one reply", replies: []gave{
				by(hook("a.h"), policy("d", "k", "1"), policy("d", "l", "1")),
				by(hook("b.h"), policy("d", "k", "2"), policy("d", "l", "2"), policy("d", "l", "3")),
			},
			want: "d/k=1 at 0 of a.h, d/l=1 at 0 of a.h", conflicts: "b.h -> a.h: d/k, b.h -> a.h: d/l", omitted: "b.h#0 of b: conflict, b.h#1 of b: conflict, b.h#2 of b: conflict",
		},
		{
			name: "equal priorities, equal value", replies: []gave{by(ranked("a.h", 1), policy("d", "k", `{"a":1,"b":2}`)), by(ranked("b.h", 1), policy("d", "k", ` {"b": 2.0, "a": 1}`))},
			want: `d/k={"a":1,"b":2} at 1 of a.h`,
		},
		{
			name: "keys are apart and sorted", replies: []gave{by(hook("a.h"), policy("d", "z", "1"), policy("d", "k", "1"), policy("c", "k", "2"))},
			want: "c/k=2 at 0 of a.h, d/k=1 at 0 of a.h, d/z=1 at 0 of a.h",
		},
		{
			name: "the turn's is stronger", turn: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage("1"), Priority: 5, Owner: "z.h"}},
			replies: []gave{by(ranked("a.h", 1), policy("d", "k", "2"))},
			omitted: "a.h#0 of a: outranked",
		},
		{
			name: "the turn's is equal", turn: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage("1"), Priority: 1, Owner: "z.h"}},
			replies:   []gave{by(ranked("a.h", 1), policy("d", "k", "2"))},
			conflicts: "a.h -> z.h: d/k", omitted: "a.h#0 of a: conflict",
		},
		{
			name: "the turn's is of the same subscription", turn: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage("1"), Priority: 1, Owner: "a.h"}},
			replies: []gave{by(ranked("a.h", 1), policy("d", "k", "2"))},
			want:    "d/k=2 at 1 of a.h",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merge.Merge(anyRow(), admitted(t, tt.replies), merge.State{Policies: tt.turn}, merge.Limits{})
			checkSame(t, "policies", strings.Join(listed(got.Merged.Policies), ", "), tt.want)
			checkSame(t, "conflicts", strings.Join(lost(got), ", "), tt.conflicts)
			checkSame(t, "omitted", strings.Join(omitted(got), ", "), tt.omitted)
			for _, d := range got.Diagnostics {
				if strings.Contains(d.Message, "secret") {
					t.Errorf("diagnostic shows a value: %s", d.Message)
				}
			}
			if len(got.Losses) != len(lost(got)) {
				t.Errorf("losses = %+v, want one per conflict", got.Losses)
			}
		})
	}
}

// listed writes policies down.
func listed(list []phases.PolicyEntry) []string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s/%s=%s at %d of %s", p.Domain, p.Key, p.Value, p.Priority, p.Owner))
	}
	return out
}

func TestPoliciesOfTheTurn(t *testing.T) {
	t.Parallel()

	turn := []phases.PolicyEntry{{Domain: "z", Key: "k", Owner: "old.h"}, {Domain: "d", Key: "k", Value: json.RawMessage("1"), Owner: "old.h"}}
	given := slices.Clone(turn)
	got := merge.Merge(anyRow(), []merge.Reply{from(t, ranked("a.h", 1), policy("d", "k", "2"), policy("m", "k", "3"))}, merge.State{Policies: turn}, merge.Limits{})
	checkSame(t, "the turn's set", listed(got.Policies), []string{"d/k=2 at 1 of a.h", "m/k=3 at 1 of a.h", "z/k= at 0 of old.h"})
	if diff := cmp.Diff(turn, given); diff != "" {
		t.Errorf("Merge changed the state (-now +before):\n%s", diff)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()

	schema := bundle("one", "zeta")
	schema.Tools[0].InputSchema = json.RawMessage(`{"type": "object", "properties": {"b": {}, "a": {}}}`)
	got := merge.Merge(anyRow(), []merge.Reply{
		from(t, ranked("a.h", 1), schema, bundle("two", "shell", "read")),
		from(t, ranked("b.h", 9), bundle("three", "read"), bundle("four", "read", "write"), bundle("five")),
	}, merge.State{HostTools: []string{"view", "shell"}}, merge.Limits{})

	want := []phases.MergedTool{
		{Name: "read", BundleID: "two", Owner: "a"}, {Name: "write", BundleID: "four", Owner: "b"}, {Name: "zeta", BundleID: "one", Owner: "a"},
	}
	checkSame(t, "tools", got.Merged.Tools, want, cmpopts.IgnoreFields(phases.MergedTool{}, "Definition", "Hash"))
	zeta := got.Merged.Tools[2]
	if string(zeta.Definition.InputSchema) != `{"properties":{"a":{},"b":{}},"type":"object"}` || !strings.HasPrefix(zeta.Hash, "sha256:") {
		t.Errorf("zeta = %s, hash %s: want a canonical schema and a hash", zeta.Definition.InputSchema, zeta.Hash)
	}
	// b.h loses "read" twice, which is one conflict.
	checkSame(t, "conflicts", lost(got), []string{"a.h -> host: shell", "b.h -> a.h: read"})
	var kept []string
	for _, c := range got.Contributions {
		bundle, ok := c.Value.(*phases.ToolBundle)
		if !ok {
			t.Fatalf("kept %T", c.Value)
		}
		kept = append(kept, bundle.BundleID)
	}
	checkSame(t, "kept bundles", kept, []string{"one", "two", "four", "five"})
}

func decision(v phases.Verdict, reason string) *phases.Decision {
	return &phases.Decision{Verdict: v, Reason: reason}
}

func TestDecisions(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		verdicts []phases.Verdict
		want     phases.Verdict
	}{
		{"ask beats allow", []phases.Verdict{"allow", "ask", "allow"}, "ask"},
		{"deny beats all", []phases.Verdict{"deny", "ask", "allow"}, "deny"},
		{"deny comes last", []phases.Verdict{"allow", "ask", "deny"}, "deny"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var replies []merge.Reply
			var want []phases.Reason
			for i, v := range tt.verdicts {
				h := ranked("p."+string(rune('a'+i)), -i)
				replies = append(replies, from(t, h, decision(v, "because")))
				want = append(want, phases.Reason{Subscription: h.Subscription, Verdict: v, Reason: "because", ContributionID: h.Subscription + "#0"})
			}
			got := merged(replies...).Decision
			if got.Verdict != tt.want {
				t.Errorf("verdict = %s, want %s", got.Verdict, tt.want)
			}
			checkSame(t, "reasons", got.Reasons, want)
		})
	}
}

func TestHandedOn(t *testing.T) {
	t.Parallel()

	a, b := hook("a.h"), with(hook("b.h"), func(h *merge.Hook) { h.Visibility = phases.VisibilityUserAudit })
	got := merged(
		from(t, a, &phases.Audit{EventKind: "e"}, &phases.Noop{}, policy("d", "k", "1"), &phases.ManifestDiagnostic{Code: "own", Severity: phases.SeverityError, Message: "m"}),
		from(t, b, &phases.ManifestDiagnostic{Code: "other", SafeForUser: true}, &phases.BackgroundJob{JobKind: "j"}, policy("d", "k", "2")),
	)
	if len(got.Audits) != 1 || got.Audits[0].Hook != a || got.Audits[0].Value.EventKind != "e" || got.Audits[0].Hash == "" {
		t.Errorf("audits = %+v", got.Audits)
	}
	if len(got.Jobs) != 1 || got.Jobs[0].Hook != b || got.Jobs[0].Value.JobKind != "j" || got.Jobs[0].Hash == "" {
		t.Errorf("jobs = %+v", got.Jobs)
	}
	// In plan order, although conflicts are found before diagnostics are copied.
	want := []phases.Diagnostic{
		{Code: "own", Severity: phases.SeverityError, Message: phases.HiddenRemark, Detail: "m", Plugin: "a", Subscription: "a.h"},
		{Code: "conflict", Severity: phases.SeverityWarning, Plugin: "b", Subscription: "b.h", OtherSubscription: "a.h", Slot: "d/k", Visibility: phases.VisibilityUserAudit},
		{Code: "other", Severity: phases.SeverityInfo, Plugin: "b", Subscription: "b.h", SafeForUser: true, Visibility: phases.VisibilityUserAudit},
	}
	want[1].Message = `policy "d/k" belongs to a.h: what b.h contributed to it was dropped`
	checkSame(t, "diagnostics", got.Diagnostics, want)
	checkSame(t, "losses", got.Losses, []merge.Loss{{Reply: 1, Subscription: "b.h", Cause: phases.CauseConflict, Slot: "d/k"}})
	if n := len(got.Parts[0].Kept); n != 4 {
		t.Errorf("a.h kept %d hashes, want 4 (noop included)", n)
	}
	if n := len(got.Parts[1].Kept); n != 2 {
		t.Errorf("b.h kept %d hashes, want 2 (without the lost policy)", n)
	}
}

func TestDroppedBecomesOmitted(t *testing.T) {
	t.Parallel()

	h := hook("a.h")
	h.Grants.Sections = []string{"mine"}
	got := merged(from(t, h, section("yours", "abc"), section("mine", "x")))
	want := []phases.Omitted{{ID: "yours", Owner: "a", Reason: "forbidden", Chars: 3}}
	checkSame(t, "omitted", got.Omitted, want)
}

// TestKeyedHashes: with a key nothing that is recorded of a contribution or tool
// can be guessed from its hash.
func TestKeyedHashes(t *testing.T) {
	t.Parallel()

	hashes := func(key string) (contribution, tool string) {
		h := hook("p.h")
		h.Key = []byte(key)
		r := merge.Merge(anyRow(), []merge.Reply{from(t, h, &phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "weather"}}})},
			merge.State{}, merge.Limits{})
		return r.Sources[0].ContributionHash, r.Merged.Tools[0].Hash
	}
	seen := map[string]bool{}
	for key, prefix := range map[string]string{"": "sha256:", "one": "hmac-sha256:", "two": "hmac-sha256:"} {
		contribution, tool := hashes(key)
		if !strings.HasPrefix(contribution, prefix) || !strings.HasPrefix(tool, prefix) || seen[contribution] || seen[tool] {
			t.Errorf("with the key %q: %s and %s", key, contribution, tool)
		}
		seen[contribution], seen[tool] = true, true
	}
}

// TestRequestTools: the engine's tool is nobody else's, neither a plugin's nor the
// host's.
func TestRequestTools(t *testing.T) {
	t.Parallel()

	got := merge.Merge(anyRow(), []merge.Reply{from(t, ranked("a.h", 1), bundle("one", phases.RequestTools, "read"))},
		merge.State{}, merge.Limits{})
	if len(got.Merged.Tools) != 1 || got.Merged.Tools[0].Name != "read" {
		t.Errorf("tools = %+v, want only read", got.Merged.Tools)
	}
	checkSame(t, "conflicts", lost(got), []string{"a.h -> builtin: request_tools"})
	checkSame(t, "omitted", got.Omitted, []phases.Omitted{{ID: phases.RequestTools, Owner: "a", Reason: "conflict"}})
	alone := merge.Merge(anyRow(), nil, merge.State{HostTools: []string{"read", phases.RequestTools}}, merge.Limits{})
	if len(alone.Diagnostics) != 1 || alone.Diagnostics[0].Code != "conflict" || alone.Diagnostics[0].Slot != phases.RequestTools ||
		!strings.Contains(alone.Diagnostics[0].Message, `tool "request_tools" belongs to builtin: the host has one`) {
		t.Errorf("a host's tool of that name: %+v", alone.Diagnostics)
	}
}
