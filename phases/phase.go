package phases

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Phase names a point in the life of a session, turn or tool call, such as
// "turn.pre_prompt_compile". The zero value is no phase.
type Phase string

// The phases of the standard table, in the order in which a session meets them.
const (
	SessionStart        Phase = "session.start"
	SessionResume       Phase = "session.resume"
	PrePolicy           Phase = "turn.pre_policy"
	PrePromptContext    Phase = "turn.pre_prompt_context"
	PostPreflight       Phase = "turn.post_preflight_prompt_context"
	PreTools            Phase = "turn.pre_tool_materialization"
	PrePromptCompile    Phase = "turn.pre_prompt_compile"
	PostPromptCompile   Phase = "turn.post_prompt_compile"
	RuntimePreContext   Phase = "runtime.turn_pre_context"
	ToolPreCall         Phase = "tool.pre_call"
	ToolPostCall        Phase = "tool.post_call"
	PreEnd              Phase = "turn.pre_end"
	PostTurn            Phase = "turn.post_turn"
	PreCompaction       Phase = "turn.pre_compaction"
	PostCompaction      Phase = "turn.post_compaction"
	SessionEnd          Phase = "session.end"
	customPhasePrefix         = "x."
	defaultCustomBudget       = time.Second
)

// Row is everything that Grapnel knows about one phase.
type Row struct {
	Phase Phase
	// When says, in a few words for people, at which moment it is dispatched.
	When string
	// Kinds are the kinds that the phase takes besides [AlwaysAccepted].
	Kinds []Kind
	// Budget is the default time for all hooks of one dispatch together; zero in queue phases.
	Budget time.Duration
	// Queue marks a phase whose hooks all run in the background.
	Queue bool
	// TurnTime says that a dispatch is debited from the turn's time.
	TurnTime bool
	// FailsOpen marks a phase that denies nothing when it fails: hooks that decide are best effort there, unless they
	// or the operator say otherwise.
	FailsOpen bool

	newInput func() Input
}

// Accepts reports whether the phase takes contributions of kind k.
func (r Row) Accepts(k Kind) bool {
	return slices.Contains(r.Kinds, k) || slices.Contains(AlwaysAccepted(), k)
}

// Decides reports whether hooks of the phase may allow, ask or deny.
func (r Row) Decides() bool { return slices.Contains(r.Kinds, KindDecision) }

// Takes reports whether a hook of the given role may subscribe to the phase: transform only where rewrites are
// taken, validate only where decisions are, and nothing but observe in queue phases.
func (r Row) Takes(role Role) bool {
	switch role {
	case RoleObserve:
		return true
	case RoleContribute:
		return !r.Queue
	case RoleTransform:
		return slices.Contains(r.Kinds, KindRewrite)
	case RoleValidate:
		return r.Decides()
	}
	return false
}

// NewInput returns a zero input of the phase's type, for decoding into.
func (r Row) NewInput() Input { return r.newInput() }

// Custom returns a row for a phase of the host's own. Its name must begin with "x.<host>."; its input is a JSON
// object ([CustomInput]). A budget of zero means one second. [NewTable] checks the row.
func Custom(name Phase, when string, budget time.Duration, kinds ...Kind) Row {
	if budget == 0 {
		budget = defaultCustomBudget
	}
	return Row{
		Phase: name, When: when, Kinds: kinds, Budget: budget, TurnTime: true,
		newInput: func() Input { return &CustomInput{Name: name} },
	}
}

// Table is an immutable set of phases: the standard rows and a host's own.
type Table struct {
	rows  []Row
	index map[Phase]int
}

// NewTable returns the standard table followed by the host's own rows (see [Custom]).
// A name without the "x.<host>." prefix or a duplicate is an error.
func NewTable(custom ...Row) (*Table, error) {
	t := &Table{rows: standardRows()}
	for _, r := range custom {
		if parts := strings.Split(string(r.Phase), "."); !strings.HasPrefix(string(r.Phase), customPhasePrefix) || len(parts) < 3 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("phase %q: a host's own phase is named x.<host>.<name>", r.Phase)
		}
		if r.newInput == nil {
			return nil, fmt.Errorf("phase %q: make the row with phases.Custom", r.Phase)
		}
		t.rows = append(t.rows, r)
	}
	t.index = make(map[Phase]int, len(t.rows))
	for i, r := range t.rows {
		if _, dup := t.index[r.Phase]; dup {
			return nil, fmt.Errorf("phase %q is registered twice", r.Phase)
		}
		t.index[r.Phase] = i
	}
	return t, nil
}

// Standard returns the table without phases of a host's own.
func Standard() *Table {
	t, err := NewTable()
	if err != nil {
		panic(err) // the standard rows are fixed; a test covers them
	}
	return t
}

// Lookup returns the row of p.
func (t *Table) Lookup(p Phase) (Row, bool) {
	i, ok := t.index[p]
	if !ok {
		return Row{}, false
	}
	return t.rows[i], true
}

// Rows returns a copy of all rows in table order.
func (t *Table) Rows() []Row { return slices.Clone(t.rows) }

// Names returns all phase names in table order, for messages and completion.
func (t *Table) Names() []string {
	names := make([]string, len(t.rows))
	for i, r := range t.rows {
		names[i] = string(r.Phase)
	}
	return names
}

func standardRows() []Row {
	const s, ms = time.Second, time.Millisecond
	return []Row{
		{SessionStart, "a session begins (startup, clear)", []Kind{KindReminder, KindPromptContext}, 2 * s, false, false, false, input[SessionStartInput]},
		{SessionResume, "a stored session is taken up again", []Kind{KindReminder, KindPromptContext}, 2 * s, false, false, false, input[SessionResumeInput]},
		{PrePolicy, "first in a turn", []Kind{KindPolicy, KindDecision}, 500 * ms, false, true, false, input[PrePolicyInput]},
		{PrePromptContext, "deterministic recall", []Kind{KindPromptContext}, 2 * s, false, true, false, input[PrePromptContextInput]},
		{PostPreflight, "after the host's own planner ran", []Kind{KindPromptContext}, 3 * s, false, true, false, input[PostPreflightInput]},
		{PreTools, "before the tool list is fixed", []Kind{KindToolBundle}, 500 * ms, false, true, false, input[PreToolsInput]},
		{PrePromptCompile, "before the prompt is assembled", []Kind{KindPromptSection, KindReminder}, s, false, true, false, input[PrePromptCompileInput]},
		{PostPromptCompile, "the prompt is compiled and not yet sent", []Kind{KindDecision}, 500 * ms, false, true, false, input[PostPromptCompileInput]},
		{RuntimePreContext, "another program owns the loop and takes context only", []Kind{KindPromptContext, KindPromptSection, KindReminder}, s, false, true, false, input[RuntimePreContextInput]},
		{ToolPreCall, "before a tool runs", []Kind{KindDecision, KindRewrite, KindReminder}, s, false, false, false, input[ToolPreCallInput]},
		{ToolPostCall, "after a tool ran", []Kind{KindRewrite, KindReminder}, s, false, false, false, input[ToolPostCallInput]},
		{PreEnd, "the model has finished and the turn is about to end", []Kind{KindDecision, KindReminder}, s, false, false, true, input[PreEndInput]},
		{PostTurn, "the turn is terminal", nil, 0, true, false, false, input[PostTurnInput]},
		{PreCompaction, "history is about to be summarised", []Kind{KindPromptContext}, 3 * s, false, false, false, input[PreCompactionInput]},
		{PostCompaction, "the summary is stored and a new epoch begins", []Kind{KindReminder}, s, false, false, false, input[PostCompactionInput]},
		{SessionEnd, "the session ends", nil, 0, true, false, false, input[SessionEndInput]},
	}
}

func input[T any, P interface {
	*T
	Input
}]() Input {
	return P(new(T))
}
