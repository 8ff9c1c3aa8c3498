package merge_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// checkScratch: in memory that is used again, Merge comes to the same, and what outlives a
// dispatch stays when the memory is cleared.
func checkScratch(t *testing.T, replies []merge.Reply, w world, want merge.Result) {
	t.Helper()

	var s merge.Scratch
	var got merge.Result
	s.Merge(&got, anyRow(), slices.Concat(replies, replies), w.state, w.limits) // leaves more than is needed
	s.Merge(&got, anyRow(), replies, w.state, w.limits)
	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
		t.Errorf("merged in memory that is used again:\n%s", diff)
	}
	parts := slices.Clone(got.Parts)
	s.Clear()
	if got.Parts = parts; encode(t, got) != encode(t, want) {
		t.Errorf("cleared memory changed a result:\n%s", cmp.Diff(encode(t, want), encode(t, got)))
	}
}

// checkOwned: AdmitOwned comes to the same as Admit.
func checkOwned(t *testing.T, h *merge.Hook, cs []phases.Contribution, want merge.Admitted, wantErr error) {
	t.Helper()

	mine := slices.Clone(cs)
	for i, c := range mine {
		mine[i] = phases.CloneContribution(c)
	}
	own := hook(h.Subscription, h.Kinds...)
	own.Grants, own.IDs = h.Grants, merge.DefaultIDs(h.Subscription)
	got, err := merge.AdmitOwned(anyRow(), own, mine, make([]merge.Entry, 0, 1))
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Errorf("AdmitOwned: %v, Admit: %v", err, wantErr)
	}
	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" && err == nil {
		t.Errorf("AdmitOwned differs from Admit:\n%s", diff)
	}
}
