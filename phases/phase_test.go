package phases_test

import (
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// list splits a comma list; nil where there is nothing.
func list[T ~string](text string) []T {
	var out []T
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, T(word))
		}
	}
	return out
}

func TestNewTable(t *testing.T) {
	t.Parallel()
	idle := phases.Custom("x.acme.idle", "nothing to do", 0, phases.KindReminder)
	tests := []struct {
		name   string
		custom []phases.Row
		want   string // part of the error
	}{
		{"none", nil, ""},
		{"two", []phases.Row{idle, phases.Custom("x.acme.deep.er", "", time.Minute)}, ""},
		{"without prefix", []phases.Row{phases.Custom("acme.idle", "", 0)}, `"acme.idle": a host's own phase is named x.<host>.<name>`},
		{"without host", []phases.Row{phases.Custom("x.idle", "", 0)}, "x.<host>.<name>"},
		{"empty part", []phases.Row{phases.Custom("x..idle", "", 0)}, "x.<host>.<name>"},
		{"empty end", []phases.Row{phases.Custom("x.acme.", "", 0)}, "x.<host>.<name>"},
		{"by hand", []phases.Row{{Phase: "x.acme.idle"}}, "phases.Custom"},
		{"twice", []phases.Row{idle, idle}, `"x.acme.idle" is registered twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table, err := phases.NewTable(tt.custom...)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := len(table.Rows()); n != 16+len(tt.custom) || len(table.Names()) != n {
				t.Errorf("%d rows, %d names", n, len(table.Names()))
			}
			for _, r := range tt.custom {
				got, ok := table.Lookup(r.Phase)
				if !ok || phases.PhaseOf(got.NewInput()) != r.Phase || got.Budget == 0 || !got.TurnTime || got.Queue {
					t.Errorf("%s is %+v, %t", r.Phase, got, ok)
				}
			}
		})
	}
	if idle.Budget != time.Second || !idle.Accepts(phases.KindReminder) || idle.Accepts(phases.KindPolicy) {
		t.Errorf("the custom row is %+v", idle)
	}
	if _, ok := phases.Standard().Lookup("x.acme.idle"); ok {
		t.Error("the standard table has a host's phase")
	}
}
