package phases_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// specified is the table of the specification, row by row: name, input fields,
// kinds, budget.
const specified = `
session.start | source | reminder, prompt_context | 2s
session.resume | state | reminder, prompt_context | 2s
turn.pre_policy | user_text, model, provider | policy, decision | 500ms
turn.pre_prompt_context | user_text, model, provider | prompt_context | 2s
turn.post_preflight_prompt_context | user_text, model, provider, recall_plan | prompt_context | 3s
turn.pre_tool_materialization | tool_calling, existing_tools | tool_bundle | 500ms
turn.pre_prompt_compile | tool_calling, available_tools, sections | prompt_section, reminder | 1s
turn.post_prompt_compile | manifest, prompt_text | decision | 500ms
runtime.turn_pre_context | user_text | prompt_context, prompt_section, reminder | 1s
tool.pre_call | tool, arguments, touched_paths | decision, rewrite, reminder | 1s
tool.post_call | tool, arguments, result, touched_paths, outcome | rewrite, reminder | 1s
turn.pre_end | text, open_tasks, forced | decision, reminder | 1s
turn.post_turn | status, user_text, assistant_text, error, tool_events, domain_events, usage | | queue
turn.pre_compaction | trigger, source_range, token_budget, policies | prompt_context | 3s
turn.post_compaction | summary, lost | reminder | 1s
session.end | reason | | queue
`

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

func TestTableIsTheSpecification(t *testing.T) {
	t.Parallel()
	rows := phases.Standard().Rows()
	want := strings.Split(strings.TrimSpace(specified), "\n")
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, line := range want {
		cells := strings.Split(line, "|")
		name, budget := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[3])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rows[i]
			if string(r.Phase) != name || r.When == "" || phases.PhaseOf(r.NewInput()) != r.Phase {
				t.Errorf("the row is %s (%q), its input is of %s", r.Phase, r.When, phases.PhaseOf(r.NewInput()))
			}
			fields := list[string](cells[1])
			slices.Sort(fields)
			var got []string
			got = append(got, phases.InputNames(r.NewInput())...)
			slices.Sort(got)
			if diff := cmp.Diff(got, fields); diff != "" {
				t.Errorf("input fields (-got +want)\n%s", diff)
			}
			kinds := list[phases.Kind](cells[2])
			for _, k := range phases.Kinds() {
				accepts := slices.Contains(kinds, k) || slices.Contains([]phases.Kind{"audit", "background_job", "manifest_diagnostic", "noop"}, k)
				if r.Accepts(k) != accepts {
					t.Errorf("accepts %s: %t", k, r.Accepts(k))
				}
			}
			if r.Queue != (budget == "queue") || !r.Queue && r.Budget.String() != budget || r.Queue && r.Budget != 0 {
				t.Errorf("budget %v, queue %t; want %s", r.Budget, r.Queue, budget)
			}
			if turn := strings.HasPrefix(name, "turn.") && !strings.HasSuffix(name, "_compaction") && name != "turn.pre_end" && !r.Queue || name == "runtime.turn_pre_context"; r.TurnTime != turn {
				t.Errorf("debited to the turn: %t", r.TurnTime)
			}
			if open := r.Phase == phases.PreEnd; r.FailsOpen != open {
				t.Errorf("fails open: %t", r.FailsOpen)
			}
		})
	}
}

func TestRowTakesRole(t *testing.T) {
	t.Parallel()
	tests := []struct {
		phase phases.Phase
		want  []phases.Role
	}{
		{phases.ToolPreCall, phases.Roles()},
		{phases.ToolPostCall, []phases.Role{phases.RoleTransform, phases.RoleContribute, phases.RoleObserve}},
		{phases.PrePolicy, []phases.Role{phases.RoleContribute, phases.RoleValidate, phases.RoleObserve}},
		{phases.PrePromptCompile, []phases.Role{phases.RoleContribute, phases.RoleObserve}},
		{phases.PostTurn, []phases.Role{phases.RoleObserve}},
	}
	for _, tt := range tests {
		var got []phases.Role
		for _, role := range append(phases.Roles(), "", "other") {
			if row(t, tt.phase).Takes(role) {
				got = append(got, role)
			}
		}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s (-got +want)\n%s", tt.phase, diff)
		}
	}
	if !row(t, phases.PostPromptCompile).Decides() || row(t, phases.PreTools).Decides() {
		t.Error("the wrong phases decide")
	}
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

func TestRowsAreACopy(t *testing.T) {
	t.Parallel()
	table := phases.Standard()
	table.Rows()[0].Phase = "spoiled"
	if names := table.Names(); names[0] != "session.start" {
		t.Errorf("the table begins with %s", names[0])
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range contributions() {
		if !phases.KindOf(c).Known() || !slices.Contains(phases.Kinds(), phases.KindOf(c)) {
			t.Errorf("%T is of the unknown kind %s", c, phases.KindOf(c))
		}
		free := phases.KindOf(c) == phases.KindManifestDiagnostic || phases.KindOf(c) == phases.KindNoop
		if phases.KindOf(c).NeedsGrant() == free {
			t.Errorf("%s needs a grant: %t", phases.KindOf(c), !free)
		}
	}
	if len(phases.Kinds()) != len(contributions()) || phases.Kind("").Known() || phases.Kind("Policy").Known() {
		t.Error("the list of kinds and the types differ")
	}
}
