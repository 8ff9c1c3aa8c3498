package gateway

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestExplainAsked: an answer from a turn's prompt names the record of events that was asked about.
func TestExplainAsked(t *testing.T) {
	t.Parallel()

	log, trees := logStore(t), treeOf(t, "w")
	c := serve(t, Options{Tree: trees, Engine: engine(t, trees, log), Log: log}).post(t, "host")
	m := do[runtime.Compiled](t, c, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "one", "turn_id": "1"}}).Manifest
	m.ThreadID, m.Sections, m.SectionIDs = "t", nil, nil
	ids := []string{"01JZ0000000000000000000000", "01JZ0000000000000000000001"}
	for i, kind := range []manifest.RecordKind{manifest.KindPrompt, manifest.KindEvents} {
		m.ManifestID, m.Kind = ids[i], kind
		if err := log.Append(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{"id", "sentence"} {
		e := do[explain.Result](t, c, "manifest/explain", object{"manifest_id": ids[1], what: "identity"})
		if e.ManifestID != ids[0] || e.Asked != ids[1] {
			t.Errorf("%s: the answer is of %s, asked %q", what, e.ManifestID, e.Asked)
		}
	}
}
