package cond

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// FuzzCondition asks any condition about any values: what a model wants to do
// (the document), what a tool gave (the text). A condition that does not compile
// says where; one that does either holds, does not hold, or fails with its cause,
// each time the same, and without changing what it looks at.
func FuzzCondition(f *testing.F) {
	documents := []string{
		`{"command": "rm -rf /", "n": 3, "deep": {"list": [1, {"a": "b"}]}}`, `null`, `["a", 1e308, -0.0, true]`, `{"a":`, ``,
		`{"n": 123456789012345678901234567890}`, `[[[[[[]]]]]]`, `"\ud800"`,
	}
	for i, source := range conditionSeeds() {
		f.Add(source, documents[i%len(documents)], "ok\n")
	}
	row := rowOf(f, phases.ToolPostCall)
	f.Fuzz(func(t *testing.T, source, document, text string) {
		c, err := Compile(source, row, nil)
		if err != nil {
			if mistake, ok := err.(*Error); !ok || mistake.Line < 1 || mistake.Column < 1 || mistake.Message == "" { //nolint:errorlint // Compile promises the type itself
				t.Errorf("Compile(%q): %#v is no placed mistake", source, err)
			}
			return
		}
		env := conditionEnv(document, text)
		before := printed(t, env)
		first, errFirst := c.Eval(env)
		if errFirst != nil && (first || phases.CodeOf(errFirst) != phases.CauseCondition) {
			t.Errorf("Eval(%q) = %v, %v", source, first, errFirst)
		}
		if again, errAgain := c.Eval(env); again != first || (errAgain == nil) != (errFirst == nil) {
			t.Errorf("Eval(%q) = %v, %v; then %v, %v", source, first, errFirst, again, errAgain)
		}
		program := *c
		program.quick = nil
		if slow, errSlow := program.Eval(env); slow != first || (errSlow == nil) != (errFirst == nil) {
			t.Errorf("Eval(%q) = %v, %v; its program gives %v, %v", source, first, errFirst, slow, errSlow)
		}
		if after := printed(t, env); after != before {
			t.Errorf("Eval(%q) changed %s to %s", source, before, after)
		}
	})
}

// conditionEnv is what a condition of tool.post_call may look at.
func conditionEnv(document, text string) Env {
	return Env{
		Context: &phases.Context{
			WorkspaceID: "w", ThreadID: "th", TurnID: text, Mode: phases.ModeAgent, Actor: phases.Actor{Kind: "user", ID: "u1"},
			Dir: "/src/app", Flags: map[string]bool{"beta": true, text: false},
		},
		Input: &phases.ToolPostCallInput{
			Tool: "shell", Arguments: json.RawMessage(document), TouchedPaths: []string{"/src/app/main.go", text}, Result: phases.NewPreview(text, MaxBytes), Outcome: "ok",
			Facts: phases.Facts{Commands: []phases.Command{{Program: text, Words: []string{text, "-r"}, Options: []string{"-r"}}}, Secrets: []string{text}},
		},
		Policies: []phases.PolicyEntry{
			{Domain: "a", Key: "b", Value: json.RawMessage(document)},
			{Domain: "memory", Key: "turn_policy", Value: json.RawMessage(`{"recall":"allow"}`)},
		},
	}
}

// printed is an environment as text; documents as they are, for they need not be
// JSON.
func printed(t *testing.T, env Env) string {
	t.Helper()

	in, ok := env.Input.(*phases.ToolPostCallInput)
	if !ok {
		t.Fatalf("the input is a %T", env.Input)
	}
	all := []any{env.Context, in.Tool, string(in.Arguments), in.TouchedPaths, in.Result, in.Outcome, in.Facts}
	for _, p := range env.Policies {
		all = append(all, p.Domain, p.Key, string(p.Value))
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// conditionSeeds are conditions that stand in the manual and in examples, each
// function and operator, and what was once hard.
func conditionSeeds() []string {
	return []string{
		`turn.mode != "system"`, `tool.name == "shell"`, `turn.mode in ["agent", "task"] and not flags.quiet`, `policy["memory/turn_policy"].recall == "allow"`,
		`any(input.touched_paths, # startsWith "/etc")`, `input.arguments.command contains "rm -rf"`, `policy["a/b"]?.c ?? flags.x`, `input.arguments.a[0].b[1:2]`,
		`any(input.touched_paths, # matches "\\.go$")`, `lower(input.result) == upper("x")`, `len(split(dir, "/")) > 2`, `count(1..9, # > 3) == one(1..3, # == 2)`,
		`map(input.touched_paths, trim(#)) == filter(input.touched_paths, len(#) > 1)`, `1 < (2 < 3) < 4`, `trim(trim("a", "b"), "c")`, `{"a": [1, dir]}.a[0] in 1..len(dir)`,
		`any(1..9, all(1..9, #))`, `input.arguments.n == 3 ? actor.kind == "user" : phase == "tool.post_call"`, `-1 ** 9 % 0`, `"a" + dir startsWith string(input.arguments.n)`,
		`thread.id == "th" and thread.conversation_id == "conv"`, `$env`, `#`,
		`any(call.facts.commands, .program == "rm" and "-r" in .options)`, `len(call.facts.secrets) > 0 or call.facts.unparsed`, "\x00", `"\xff"`, "·load($env, 1)",
	}
}
