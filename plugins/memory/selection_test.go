package memory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/phases"
)

// selection is one with everything in it.
func selection() recall.Selection {
	return recall.Selection{
		Items: []recall.Recalled{
			{ID: "01J8Z", Scope: "user", Category: "preference", Text: "I prefer <tabs>", Score: 1.25},
			{ID: "01J90", Scope: "workspace", Category: "instruction", Text: "Answer in …", Pinned: true},
		},
		Omitted: 3,
	}
}

// passed is what a selection is encoded as.
func passed(tb testing.TB, s recall.Selection) string {
	tb.Helper()
	out, err := passOn(recallID, "memory_recalled", s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	c, ok := out[0].(*phases.PromptContext)
	if !ok || c.Rendered() {
		tb.Fatalf("%+v", out[0])
	}
	return c.Content
}

func TestSelectionRefused(t *testing.T) {
	t.Parallel()
	item := `{"id":"a","scope":"user","category":"fact","text":"x","score":1}`
	tests := []struct{ name, content, want string }{
		{"nothing", ``, "empty"},
		{"no JSON", `I recalled nothing.`, "invalid character"},
		{"cut off", `{"items":[` + item, "EOF"},
		{"two values", `{"items":[]} {}`, "more than one JSON value"},
		{"unknown key", `{"memories":[]}`, "memories"},
		{"too long", `{"items":[{"text":"` + strings.Repeat("x", maxPassedBytes) + `"}]}`, "more than 65536 bytes"},
		{"too many", `{"items":[` + strings.Repeat(item+",", maxPassedItems) + item + `]}`, "33 items"},
		{"less than none omitted", `{"items":[],"omitted":-1}`, "-1 omitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeSelection(tt.content)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(got, recall.Selection{}); diff != "" {
				t.Errorf("half of it: %s", diff)
			}
		})
	}
}

// FuzzSelection: what is taken is the same when it is passed on again.
func FuzzSelection(f *testing.F) {
	f.Add(passed(f, selection()))
	f.Add(`{"items":null,"omitted":1}`)
	f.Add(`{"items":[{"id":"a","scope":"thread","category":"task","text":"\u2028<b>\n…","score":0.000001}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		s, err := decodeSelection(content)
		if err != nil || len(s.Items) == 0 {
			return
		}
		back, err := decodeSelection(passed(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(back, s); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
}
