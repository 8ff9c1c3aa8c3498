package turnstate

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// remarks are n diagnostics of a plugin with messages of so many bytes.
func remarks(plugin string, n, bytes int) []phases.Diagnostic {
	list := make([]phases.Diagnostic, n)
	for i := range list {
		message := fmt.Sprintf("%d %s", i, strings.Repeat("x", bytes))
		list[i] = phases.Diagnostic{Code: "c", Severity: phases.SeverityInfo, Plugin: plugin, Subscription: plugin + ".h", Message: message[:max(bytes, 5)]}
	}
	return list
}

// byPlugin counts rows; the one that stands for others has no plugin.
func byPlugin(rows []phases.Diagnostic) map[string]int {
	out := map[string]int{}
	for _, d := range rows {
		name := d.Plugin
		if d.Code == codeNotesDropped {
			name = "dropped"
		}
		out[name]++
	}
	return out
}

func TestNotes(t *testing.T) {
	t.Parallel()

	mark := phases.Diagnostic{Code: phases.CodeFailOpen, Severity: phases.SeverityWarning, Plugin: "flood", Subscription: "flood.h", Message: "it failed"}
	tests := []struct {
		name  string
		lists [][]phases.Diagnostic
		want  map[string]int
	}{
		{"each once", [][]phases.Diagnostic{remarks("a", 3, 5), remarks("a", 3, 5), remarks("b", 3, 5)}, map[string]int{"a": 3, "b": 3}},
		{"a flood of rows", [][]phases.Diagnostic{remarks("flood", 100_000, 100), remarks("b", 3, 5)}, map[string]int{"flood": MaxPluginNotes, "b": 3, "dropped": 1}},
		{"a flood of bytes", [][]phases.Diagnostic{remarks("flood", 60, 500_000), remarks("b", 3, 5)}, map[string]int{"flood": 16, "b": 3, "dropped": 1}},
		{"its failure behind it", [][]phases.Diagnostic{append(remarks("flood", 1000, 100), mark)}, map[string]int{"flood": MaxPluginNotes + 1, "dropped": 1}},
		{"the engine's own", [][]phases.Diagnostic{remarks("", 500, 10)}, map[string]int{"": 500}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var n notes
			for _, list := range tt.lists {
				n.add(list)
			}
			if diff := cmp.Diff(byPlugin(n.rows(0)), tt.want); diff != "" {
				t.Errorf("rows (-got +want):\n%s", diff)
			}
		})
	}
	var n notes
	for i := range 50 {
		n.add(remarks(fmt.Sprint("p", i), 1000, 10))
	}
	if rows := n.rows(0); len(rows) != maxNotes+1 || byPlugin(rows)["p0"] != MaxPluginNotes {
		t.Errorf("%d rows of 50 plugins that flood", len(rows))
	}
	if last := n.rows(0)[maxNotes]; !strings.HasPrefix(last.Message, "48,976 diagnostics of ") {
		t.Errorf("the last row is %+v", last)
	}
}

// TestNotesAreBounded whatever a plugin puts into one: what cannot be cut is
// dropped, a mark of failure included.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()

	var n notes
	huge := strings.Repeat("ü", 1<<16)
	for i := range 100 {
		n.add([]phases.Diagnostic{
			{Code: phases.CodeFailOpen, Plugin: "p", Subscription: fmt.Sprint("p.", i%3), Slot: huge + strconv.Itoa(i), Message: huge},
			{Code: "c", Plugin: "p", Subscription: "p.h", Message: strconv.Itoa(i) + huge},
		})
	}
	bytes := 0
	for _, d := range n.rows(0) {
		bytes += NoteBytes(&d)
		if text.Chars(d.Message) > MaxNoteChars {
			t.Errorf("a message of %d characters", text.Chars(d.Message))
		}
	}
	if bytes > maxPluginNoteBytes+1000 {
		t.Errorf("%d bytes of one plugin", bytes)
	}
}
