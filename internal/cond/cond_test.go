package cond

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// rowOf returns a phase's row, made up for names that begin with "x.".
func rowOf(tb testing.TB, phase phases.Phase) phases.Row {
	tb.Helper()
	if strings.HasPrefix(string(phase), "x.") {
		return phases.Custom(phase, "a test", 0)
	}
	row, ok := phases.Standard().Lookup(phase)
	if !ok {
		tb.Fatalf("no phase %s", phase)
	}
	return row
}

func compile(tb testing.TB, phase phases.Phase, source string) *Condition {
	tb.Helper()
	c, err := Compile(source, rowOf(tb, phase), nil)
	if err != nil {
		tb.Fatalf("Compile(%s): %v", source, err)
	}
	return c
}

// fullEnv is an environment in which every name has a value.
func fullEnv() Env {
	return Env{
		Context: &phases.Context{
			WorkspaceID: "w", ThreadID: "th", ConversationThreadID: "conv", TurnID: "tu", TaskID: "ta", AgentID: "ag", SessionID: "se",
			Mode: phases.ModeAgent, Profile: phases.ProfileFull, Actor: phases.Actor{Kind: "user", ID: "u1"},
			Dir: "/src/app", Flags: map[string]bool{"beta": true, "x.y": true},
		},
		Input: &phases.ToolPreCallInput{
			Tool:         "shell",
			Arguments:    json.RawMessage(`{"command": "rm -rf /", "n": 3, "deep": {"list": [1, {"a": "b"}]}}`),
			TouchedPaths: []string{"/src/app/main.go", "/etc/passwd"},
			Facts: phases.Facts{
				Commands: []phases.Command{{Program: "cd", Words: []string{"cd", "x"}}, {Program: "rm", Words: []string{"rm", "-rf", "/"}, Options: []string{"-r", "-f"}}},
				Secrets:  []string{"/src/app/.env"},
			},
		},
		Policies: []phases.PolicyEntry{
			{Domain: "memory", Key: "enabled", Value: json.RawMessage(`true`)},
			{Domain: "tools", Key: "deny/list", Value: json.RawMessage(`["shell", "net"]`)},
			{Domain: "limits", Key: "max", Value: json.RawMessage(`{"n": 5, "when": null}`)},
		},
		Tool: "shell",
	}
}

func TestEval(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, source string
		want         bool
	}{
		{"constant", `true`, true},
		{"phase", `phase == "tool.pre_call"`, true},
		{"turn", `turn.id == "tu" && turn.mode == "agent" && turn.profile == "full"`, true},
		{"thread", `thread.id == "th" and thread.conversation_id == "conv"`, true},
		{"ids", `workspace.id + session.id + agent.id + task.id == "wseagta"`, true},
		{"actor", `actor.kind == "user" && actor.id != "u2"`, true},
		{"dir", `dir startsWith "/src" and not (dir endsWith "/")`, true},
		{"tool", `tool.name in ["shell", "exec"]`, true},
		{"index as a name", `turn["mode"] == "agent"`, true},
		{"optional chain over known names", `turn?.mode == "agent" && input?.tool == "shell"`, true},
		{"flag", `flags.beta`, true},
		{"flag by index", `flags["x.y"]`, true},
		{"missing flag", `flags.nothing`, false},
		{"missing flag negated", `!flags.nothing`, true},
		{"policy", `policy["memory/enabled"]`, true},
		{"policy with a slash in its key", `tool.name in policy["tools/deny/list"]`, true},
		{"policy member", `policy["limits/max"].n > 4`, true},
		{"policy member null", `policy["limits/max"].when == nil`, true},
		{"missing policy is nil", `policy["memory/nothing"] == nil`, true},
		{"missing policy counts as false", `policy["memory/nothing"]`, false},
		{"missing policy, optional member", `policy["memory/nothing"]?.limit == nil`, true},
		{"missing policy, default", `(policy["memory/nothing"] ?? 7) == 7`, true},
		{"input text", `input.tool == "shell"`, true},
		{"input list", `len(input.touched_paths) == 2`, true},
		{"input list entry", `input.touched_paths[1] == "/etc/passwd" && input.touched_paths[-1] endsWith "passwd"`, true},
		{"input slice", `len(input.touched_paths[1:]) == 1`, true},
		{"input json", `input.arguments.command contains "rm -rf"`, true},
		{"input json number", `input.arguments.n == 3`, true},
		{"input json deep", `input.arguments.deep.list[1].a == "b"`, true},
		{"input json missing", `input.arguments.missing == nil`, true},
		{"any", `any(input.touched_paths, # startsWith "/etc")`, true},
		{"all", `all(input.touched_paths, # startsWith dir)`, false},
		{"none with braces", `none(input.touched_paths, {# matches "\\.md$"})`, true},
		{"count", `count(input.touched_paths, # contains "/") == 2`, true},
		{"filter and map", `map(filter(input.touched_paths, len(#) > 11), lower(#)) == ["/src/app/main.go"]`, true},
		{"find", `find(input.touched_paths, # contains "etc") == "/etc/passwd" && findIndex(input.touched_paths, # contains "etc") == 1`, true},
		{"predicate over json", `any(input.arguments.deep.list, # == 1)`, true},
		{"predicate over members", `any([input.arguments, input.arguments.deep], .n == 3)`, true},
		{"sum", `sum(1..4) == 10 && sum(input.touched_paths, len(#)) > 20`, true},
		{"dynamic range", `len(0..len(input.touched_paths)) == 3`, true},
		{"dynamic range, json number", `len(1..input.arguments.n) == 3`, true},
		{"empty dynamic range", `len(len(dir)..1) == 0`, true},
		{"map with index", `map(input.touched_paths, #index) == [0, 1]`, true},
		{"functions", `upper(trim(" a ")) == "A" && split(dir, "/")[1] == "src" && int("4") == 4 && max(1, 2) == 2 && type(dir) == "string"`, true},
		{"facts", `len(call.facts.secrets) > 0 and not call.facts.unparsed and call.facts.why == ""`, true},
		{"commands of the facts", `any(call.facts.commands, .program == "rm" and "-r" in .options)`, true},
		{"no such command", `any(call.facts.commands, .program == "cd" and "-r" in .options)`, false},
		{"facts as a field", `input.facts.secrets == call.facts.secrets`, true},
		{"keys", `"command" in keys(input.arguments) && "n" in input.arguments`, true},
		{"conditional", `turn.mode == "agent" ? tool.name == "shell" : false`, true},
		{"map literal", `{"a": dir}.a == dir`, true},
		{"short circuit hides errors", `false && input.arguments.missing.more.evenmore == 1`, false},
		{"any argument", `any(texts(input.arguments), # contains "-rf")`, true},
		{"a text below", `"b" in texts(input.arguments) and texts(nil) == [] and texts(dir) == [dir] and len(texts(input.touched_paths)) == 2`, true},
		{"as JSON", `toJSON(input.arguments) == '{"command":"rm -rf /","deep":{"list":[1,{"a":"b"}]},"n":3}'`, true},
		{"JSON without escapes of HTML", `toJSON(["<a> & b"]) contains "<a> & b"`, true},
		{"comment and lines", "turn.mode == 'agent' // why\n  && true", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := compile(t, phases.ToolPreCall, tt.source).Eval(fullEnv())
			if err != nil || got != tt.want {
				t.Errorf("Eval(%s) = %v, %v; want %v", tt.source, got, err, tt.want)
			}
		})
	}
}

func TestEvalOtherPhases(t *testing.T) {
	t.Parallel()

	postTurn := &phases.PostTurnInput{
		Status: phases.TurnFailed, UserText: phases.NewPreview("hello", 10), Usage: phases.Usage{InputTokens: 12},
		ToolEvents:   []phases.ToolEvent{{Tool: "shell", Outcome: "error", DurationMS: 1.5}},
		DomainEvents: []phases.DomainEvent{{Kind: "k", Details: json.RawMessage(`{"a": [1]}`)}},
	}
	custom := &phases.CustomInput{Name: "x.host.review", Fields: json.RawMessage(`{"files": ["a", "b"], "by": {"name": "n"}}`)}
	tests := []struct {
		name   string
		phase  phases.Phase
		input  phases.Input
		source string
		want   bool
	}{
		{"text", phases.PrePolicy, &phases.PrePolicyInput{UserText: phases.T("deploy it")}, `input.user_text contains "deploy"`, true},
		{"no input is a zero one", phases.PrePolicy, nil, `input.user_text == "" && input.model == ""`, true},
		{"bool", phases.PrePromptCompile, &phases.PrePromptCompileInput{ToolCalling: true}, `input.tool_calling && len(input.sections) == 0`, true},
		{"status and preview", phases.PostTurn, postTurn, `input.status == "failed" && input.user_text == "hello"`, true},
		{"object by JSON name", phases.PostTurn, postTurn, `input.usage.input_tokens == 12 && input.usage.output_tokens == 0`, true},
		{"list of objects", phases.PostTurn, postTurn, `any(input.tool_events, .tool == "shell" && #.duration_ms > 1)`, true},
		{"json inside a list of objects", phases.PostTurn, postTurn, `input.domain_events[0].details.a[0] == 1`, true},
		{"nested struct", phases.PreCompaction, &phases.PreCompactionInput{SourceRange: phases.SourceRange{From: "m1"}, TokenBudget: 9}, `input.source_range.from == "m1" && input.token_budget < 10`, true},
		{"tool of the input", phases.ToolPostCall, &phases.ToolPostCallInput{Tool: "edit"}, `tool.name == "edit"`, true},
		{"custom phase", "x.host.review", custom, `"b" in input.files && input.by.name == "n" && input["nothing"] == nil`, true},
		{"custom phase without fields", "x.host.review", &phases.CustomInput{Name: "x.host.review"}, `input.files == nil`, true},
		{"custom phase without input", "x.host.review", nil, `input.files == nil`, true},
		{"no tool at all", phases.PrePolicy, nil, `tool.name == ""`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := compile(t, tt.phase, tt.source).Eval(Env{Input: tt.input})
			if err != nil || got != tt.want {
				t.Errorf("Eval(%s) = %v, %v; want %v", tt.source, got, err, tt.want)
			}
		})
	}
}

func TestCompileMistakes(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, source string
		line, column int
		message      string // a part of it
	}{
		{"unknown name", `trun.mode == "a"`, 1, 1, `unknown name "trun" (did you mean "turn"?)`},
		{"unknown field", `turn.mod == "a"`, 1, 6, `"turn" has no field "mod" (did you mean "mode"?)`},
		{"unknown field, none near", `turn.colour == "a"`, 1, 6, `it has id, mode, profile`},
		{"unknown input field on line 2, of a call", "true &&\n  input.tol == ''", 2, 9, `"input" has no field "tol" (did you mean "tool"?)`},
		{"unknown field of a nested object", `input.usage.input_token > 1`, 1, 13, `(did you mean "input_tokens"?)`},
		{"unknown field of an entry", `any(input.tool_events, .tol == "")`, 1, 25, `(did you mean "tool"?)`},
		{"unknown facts of a call", `len(call.facts.secret) > 0`, 1, 16, `"call.facts" has no field "secret" (did you mean "secrets"?)`},
		{"unknown member of a command of a call", `any(call.facts.commands, .programme == "rm")`, 1, 27, `(did you mean "program"?)`},
		{"unknown field of a call", `call.fact.unparsed`, 1, 6, `"call" has no field "fact" (did you mean "facts"?)`},
		{"facts without a call", `len(call.facts.secrets) > 0`, 1, 5, `unknown name "call"`},
		{"one sign of equality", `dir = "x"`, 1, 5, `unexpected token Operator("="): a comparison is written ==`},
		{"another inequality", `dir <> "x"`, 1, 6, `a comparison is written !=`},
		{"an operator as a function", `contains(dir, "x")`, 1, 1, `: contains is an operator: a contains b`},
		{"an operator as a method", `dir.startswith("x")`, 1, 5, `: startsWith is an operator: a startsWith b`},
		{"a function as a method", `dir.lower() == "x"`, 1, 5, `: lower is a function: lower(a)`},
		{"another function's name", `size(dir) > 1`, 1, 1, `: use len(a)`},
		{"an operator in lower case", `dir startswith "x"`, 1, 5, `: startsWith is an operator: a startsWith b`},
		{"a word between values", `dir is "x"`, 1, 5, `: an operator, such as ==, is missing before it`},
		{"not closed", `len(dir`, 1, 7, `a bracket is not closed`},
		{"unknown function", `lenn(dir) > 1`, 1, 1, `unknown function "lenn" (did you mean "len"?)`},
		{"space as a value", `turn == nil`, 1, 1, `"turn" is not a value by itself; write one of id, mode, profile`},
		{"flags as a value", `"a" in flags`, 1, 8, `write flags.NAME`},
		{"policy by a computed name", `policy[dir]`, 1, 1, `write policy["domain/key"]`},
		{"environment", `$env["dir"] == ""`, 1, 1, `unknown name "$env"`},
		{"types", `turn.mode == 1`, 1, 11, "mismatched types string and int"},
		{"argument type", `len(flags.a) == 1`, 1, 1, "invalid argument for len (type bool)"},
		{"field of a text", `input.tool_events[0].tool == dir.x`, 1, 34, "has no field x"},
		{"not a bool", `dir`, 1, 1, "must give true or false: expected bool, but got string"},
		{"syntax", `turn.mode ==`, 1, 12, "unexpected token EOF"},
		{"regular expression", `dir matches "("`, 1, 13, "missing closing )"},
		{"computed regular expression", `dir matches turn.id`, 1, 18, "must be a constant text"},
		{"clock", `now().Year() > 1`, 1, 7, "no methods"},
		{"clock alone", `now() == nil`, 1, 1, `"now" is not available`},
		{"method", `dir.String() == ""`, 1, 5, "no methods"},
		{"repeat", `repeat("a", 9) == ""`, 1, 1, `"repeat" is not available`},
		{"our own functions", "·load(1)", 1, 1, ""},
		{"let", `let a = 1; a == 1`, 1, 5, "one expression"},
		{"sequence", `true; false`, 1, 1, "one expression"},
		{"if", `if true { true } else { false }`, 1, 4, "unexpected token"},
		{"nested predicates", `any(1..9, all(1..9, # > 1))`, 1, 11, "inside another predicate"},
		{"pointer outside", `len(#) > 1`, 1, 5, "unexpected token"},
		{"unknown pointer", `any(1..9, #acc > 1)`, 1, 11, "unknown name #acc"},
		{"huge range", `1 in -9000000000000000000..9000000000000000000`, 1, 26, "longer than 1000"},
		{"nested predicates in a function", `all(1..9, len(filter(1..9, true)) > 1)`, 1, 15, "inside another predicate"},
		{"chained comparison", `1 < 2 < 3`, 1, 5, "write what is meant in full"},
		{"short conditional", `true ?: false`, 1, 1, "write what is meant in full"},
		{"too many arguments", `trim(dir, "/") == ""`, 1, 1, "trim takes 1 arguments here, not 2"},
		{"too many nodes", strings.Repeat("true && ", MaxNodes) + "true", 1, 1030, "maximum allowed nodes"},
		{"too long", "true" + strings.Repeat(" ", MaxSource), 1, 1, "at most 4096"},
		{"empty", " \n", 1, 1, "empty"},
		{"invalid UTF-8", "dir == '\xff'", 1, 1, "UTF-8"},
		{"columns count characters", `"äöü" == dirr`, 1, 10, `(did you mean "dir"?)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			phase := phases.PostTurn
			if strings.HasSuffix(tt.name, "of a call") {
				phase = phases.ToolPreCall
			}
			_, err := Compile(tt.source, rowOf(t, phase), nil)
			mistake, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("Compile(%.80s) = %v, want an *Error", tt.source, err)
			}
			if !strings.Contains(mistake.Message, tt.message) {
				t.Errorf("message %q, want a part %q", mistake.Message, tt.message)
			}
			if line, column := mistake.Place(); line != tt.line || column != tt.column {
				t.Errorf("place %d:%d, want %d:%d\n%v", line, column, tt.line, tt.column, err)
			}
		})
	}
}

func TestErrorShowsCaret(t *testing.T) {
	t.Parallel()

	_, err := Compile("true &&\n\tturn.mod == \"x\"", rowOf(t, phases.PrePolicy), nil)
	want := strings.Join([]string{
		`2:7: "turn" has no field "mod" (did you mean "mode"?)`,
		` |  turn.mod == "x"`,
		` | ......^`,
	}, "\n")
	if diff := cmp.Diff(fmt.Sprint(err), want); diff != "" {
		t.Errorf("error (-got +want):\n%s", diff)
	}
}

func TestEvalErrors(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", MaxBytes+1)
	big := func(mutate func(*phases.ToolPreCallInput)) Env {
		env := fullEnv()
		in := *env.Input.(*phases.ToolPreCallInput) //nolint:forcetypeassert // made three lines above
		mutate(&in)
		env.Input = &in
		return env
	}
	tests := []struct {
		name, source string
		env          Env
		message      string
	}{
		{"member of nil", `input.arguments.missing.more == 1`, fullEnv(), `1:25: input.arguments.missing.more has no member "more" on its way: there is nil`},
		{"member of a text", `input.arguments.command.more == 1`, fullEnv(), `there is a text`},
		{"a large value as JSON", `toJSON([input.arguments, dir]) == ""`, big(func(in *phases.ToolPreCallInput) { in.Arguments = json.RawMessage(strconv.Quote(long[1:])) }), "the argument weighs"},
		{"index out of range", `input.touched_paths[7] == ""`, fullEnv(), "index out of range"},
		{"no bool", `policy["limits/max"]`, fullEnv(), "bool(map[string]interface {})"},
		{"negated nil", `!policy["memory/nothing"]`, fullEnv(), "not bool"},
		{"division by zero", `1 % (len(dir) - 8) == 0`, fullEnv(), "divide by zero"},
		{"conversion", `int(dir) == 1`, fullEnv(), "invalid operation: int(/src/app)"},
		{"list wanted, nil", `any(policy["memory/nothing"], # == 1)`, fullEnv(), "wants a list and got nil"},
		{"list wanted, number", `any(input.arguments.n, # == 1)`, fullEnv(), "wants a list and got a number"},
		{"list wanted, object", `any(input.arguments, # == 1)`, fullEnv(), "wants a list and got an object"},
		{"list wanted, text", `any(input.arguments.command, # == 1)`, fullEnv(), "wants a list and got a text"},
		{"dynamic range", `1 in 0..(len(dir) * 1000)`, fullEnv(), "0..8000 is longer than 1000"},
		{"range between texts", `1 in 0..input.arguments.command`, fullEnv(), "from a number to a text"},
		{"wrong input", `input.tool == ""`, Env{Input: &phases.PrePolicyInput{}}, "cannot be read from an input of type *phases.PrePolicyInput"},
		{"nil pointer input", `input.tool == ""`, Env{Input: (*phases.ToolPreCallInput)(nil)}, "cannot be read"},
		{"long text", `input.tool == ""`, big(func(in *phases.ToolPreCallInput) { in.Tool = long }), "input.tool weighs 65537 bytes"},
		{
			"long list", `"a" in input.touched_paths`,
			big(func(in *phases.ToolPreCallInput) { in.TouchedPaths = make([]string, MaxItems+1) }), "is a list of 1001 entries",
		},
		{
			"heavy list", `"a" in input.touched_paths`,
			big(func(in *phases.ToolPreCallInput) { in.TouchedPaths = []string{long} }), "input.touched_paths weighs",
		},
		{
			"heavy object", `input.arguments == nil`,
			big(func(in *phases.ToolPreCallInput) { in.Arguments = json.RawMessage(`{"a": {"b": ["` + long + `"]}}`) }), "input.arguments weighs",
		},
		{
			"long list in json", `input.arguments.a == nil`,
			big(func(in *phases.ToolPreCallInput) {
				in.Arguments = json.RawMessage(`{"a": {"b": [` + strings.Repeat("1,", MaxItems) + `1]}}`)
			}), "input.arguments.a is a list of 1001 entries",
		},
		{
			"many small entries", `input.arguments == nil`,
			big(func(in *phases.ToolPreCallInput) {
				in.Arguments = json.RawMessage(`[` + strings.Repeat(`[`+strings.Repeat("1,", 999)+`1],`, 5) + `1]`)
			}), "input.arguments weighs",
		},
		{
			"huge json", `input.arguments.a == nil`,
			big(func(in *phases.ToolPreCallInput) {
				in.Arguments = json.RawMessage(`{"b": "` + strings.Repeat("x", MaxJSON) + `"}`)
			}), "conditions look into at most",
		},
		{"invalid json", `input.arguments.a == nil`, big(func(in *phases.ToolPreCallInput) { in.Arguments = json.RawMessage(`{`) }), "not valid JSON"},
		{
			"deep json", `input.arguments == nil`,
			big(func(in *phases.ToolPreCallInput) {
				in.Arguments = json.RawMessage(strings.Repeat("[", 40) + strings.Repeat("]", 40))
			}), "nested deeper than 32",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := compile(t, phases.ToolPreCall, tt.source).Eval(tt.env)
			if got || phases.CodeOf(err) != phases.CauseCondition {
				t.Fatalf("Eval = %v, %v; want an error with the cause condition", got, err)
			}
			if !strings.Contains(err.Error(), tt.message) || strings.Contains(err.Error(), "\n") {
				t.Errorf("message %q, want one line with %q", err, tt.message)
			}
		})
	}
}

// What is not read is not measured: a guard works beside huge content.
func TestEvalReadsOnlyWhatItNeeds(t *testing.T) {
	t.Parallel()

	env := fullEnv()
	env.Input = &phases.ToolPreCallInput{
		Tool:         "write",
		Arguments:    json.RawMessage(`{"path": "/etc/x", "content": "` + strings.Repeat("x", 4*MaxBytes) + `"}`),
		TouchedPaths: make([]string, 5*MaxItems),
	}
	env.Policies = append(env.Policies, phases.PolicyEntry{Domain: "a", Key: "b", Value: json.RawMessage(`{`)})
	for _, source := range []string{
		`input.arguments.path startsWith "/etc"`,
		`input.tool == "write"`,
		`input.tool == "write" || len(input.arguments.content) > 1`,
		`policy["memory/enabled"]`,
	} {
		if got, err := compile(t, phases.ToolPreCall, source).Eval(env); err != nil || !got {
			t.Errorf("Eval(%s) = %v, %v; want true", source, got, err)
		}
	}
}

// Compile reads the names and types of inputs from their structs; what a hook
// may be granted must be the same names.
func TestInputFieldsAgree(t *testing.T) {
	t.Parallel()

	for _, row := range phases.Standard().Rows() {
		want := slices.DeleteFunc(phases.Visible(row), func(name string) bool { return slices.Contains(phases.SeenSets(), name) })
		sc := newScope(row, nil)
		var names []string
		for name, l := range sc.spaces["input"].fields {
			names = append(names, name)
			v, err := l.read(&Env{Input: row.NewInput()})
			if err != nil {
				t.Errorf("%s: %s: %v", row.Phase, name, err)
			}
			typ := plainType(l.typ)
			if typ == reflect.TypeFor[map[string]any]() || typ == reflect.TypeFor[[]any]() {
				continue
			}
			if typ != nil && fmt.Sprintf("%T", v) != typ.String() {
				t.Errorf("%s: %s is %T, and the checker is told %s", row.Phase, name, v, typ)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(names, want); diff != "" {
			t.Errorf("%s: fields (-got +want):\n%s", row.Phase, diff)
		}
	}
}

// One condition serves many turns at once.
func TestEvalConcurrently(t *testing.T) {
	t.Parallel()

	c := compile(t, phases.ToolPreCall, `any(input.touched_paths, # contains input.arguments.want) && flags.on && policy["a/b"] == tool.name`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := fmt.Sprint("p", i)
			in := &phases.ToolPreCallInput{Tool: want, Arguments: json.RawMessage(`{"want": "` + want + `"}`), TouchedPaths: []string{"/" + want}}
			env := Env{
				Context: &phases.Context{Flags: map[string]bool{"on": i%2 == 0}}, Input: in,
				Policies: []phases.PolicyEntry{{Domain: "a", Key: "b", Value: json.RawMessage(`"` + want + `"`)}},
			}
			for range 200 {
				if got, err := c.Eval(env); err != nil || got != (i%2 == 0) {
					t.Errorf("worker %d: Eval = %v, %v", i, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
