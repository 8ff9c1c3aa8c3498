package merge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// checkSame reports how what a test got differs from what it wants.
func checkSame(t testing.TB, what string, got, want any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(got, want, opts...); diff != "" {
		t.Errorf("%s (-got +want):\n%s", what, diff)
	}
}

// everything grants all that wildcards can grant.
func everything() *phases.Grants {
	all := []string{"*"}
	return &phases.Grants{Contribute: all, Sections: all, StableSections: all, Policies: all, Domains: all, Tools: all}
}

// hook makes a hook of the plugin that the subscription's id names, with all
// grants.
func hook(subscription string, kinds ...phases.Kind) *merge.Hook {
	plugin, name, _ := strings.Cut(subscription, ".")
	return &merge.Hook{
		Subscription: subscription, Hook: name, Plugin: plugin, PluginVersion: "1.0.0", Kinds: kinds, Grants: everything(),
	}
}

// rowOf returns the row of a phase; anyRow takes every kind.
func rowOf(t testing.TB, p phases.Phase) phases.Row {
	t.Helper()

	row, ok := phases.Standard().Lookup(p)
	if !ok {
		t.Fatalf("no phase %s", p)
	}
	return row
}

func anyRow() phases.Row { return phases.Custom("x.test.any", "in tests", 0, phases.Kinds()...) }

// from admits contributions of a hook and makes them a reply.
func from(t testing.TB, h *merge.Hook, cs ...phases.Contribution) merge.Reply {
	t.Helper()

	if h.Kinds == nil {
		h.Kinds = phases.Kinds()
	}
	got, err := merge.Admit(anyRow(), h, cs)
	if err != nil {
		t.Fatalf("Admit of %s: %v", h.Subscription, err)
	}
	return merge.Reply{Hook: h, Entries: got.Entries, Dropped: got.Dropped}
}

// gave is what a hook answered.
type gave struct {
	hook *merge.Hook
	list []phases.Contribution
}

func by(h *merge.Hook, list ...phases.Contribution) gave { return gave{h, list} }

// admitted admits what hooks answered.
func admitted(t testing.TB, all []gave) []merge.Reply {
	t.Helper()

	var replies []merge.Reply
	for _, g := range all {
		replies = append(replies, from(t, g.hook, g.list...))
	}
	return replies
}

// with sets fields of a hook.
func with(h *merge.Hook, set func(*merge.Hook)) *merge.Hook {
	set(h)
	return h
}

// ranked gives a hook a priority.
func ranked(subscription string, priority int) *merge.Hook {
	return with(hook(subscription), func(h *merge.Hook) { h.Priority = priority })
}

// merged merges replies in a phase that takes everything, with default limits.
func merged(replies ...merge.Reply) merge.Result {
	return merge.Merge(anyRow(), replies, merge.State{}, merge.Limits{})
}

// own is the shared part of a contribution with an id and a priority.
func own(id string, priority int) phases.Common {
	return phases.Common{ContributionID: id, Priority: priority}
}
