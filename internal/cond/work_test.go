package cond

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// worstEnv fills everything that tool phases can read to its cap.
func worstEnv() Env {
	paths := make([]string, MaxItems)
	for i := range paths {
		paths[i] = strings.Repeat("a", MaxBytes/MaxItems-entryBytes-8) + strconv.Itoa(i)
	}
	list, err := json.Marshal(paths)
	if err != nil {
		panic(err) // a list of texts always encodes
	}
	text := strings.Repeat("a", MaxBytes)
	return Env{
		Context:  &phases.Context{Dir: text, TurnID: text, WorkspaceID: text[:MaxBytes-1] + "b"},
		Input:    &phases.ToolPostCallInput{Tool: text, TouchedPaths: paths, Result: phases.NewPreview(text, MaxBytes), Outcome: text, Arguments: list},
		Policies: []phases.PolicyEntry{{Domain: "a", Key: "b", Value: list}, {Domain: "a", Key: "text", Value: json.RawMessage(`"` + text + `"`)}},
	}
}

// Everything here is accepted and close to the caps; without them it would take minutes and more.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()

	repeated := func(part, glue string) string {
		n := (MaxNodes - 6) / 12
		return strings.Repeat(part+glue, n) + part
	}
	tests := []struct{ name, source string }{
		{"membership of a list in a list", `all(input.touched_paths, # + "x" not in policy["a/b"])`},
		{"search in a text per entry", `none(input.touched_paths, input.result contains # + "x")`},
		{"regular expression per entry", `none(input.touched_paths, # matches "(x+x+)+y")`},
		{"case mapping", `upper(lower(upper(input.result))) == ""`},
		{"pieces", `none(split(input.result, ""), # == "b")`},
		{"deep comparison", `all(1..400, [policy["a/b"]] == [input.arguments])`},
		{"many predicates", repeated(`count(1..1000, # > 0) == 1000`, ` && `)},
		{"lists of lists", `any(map(1..1000, [#, #, #, #]), 1001 in #)`},
		{"joined in a chain", strings.Repeat("input.result + ", 20) + `"x" == dir`},
		{"nested functions", strings.Repeat("trim(", 100) + "dir" + strings.Repeat(")", 100) + ` == ""`},
		{"JSON of a large value", `all(1..10, toJSON(input.arguments) contains "x" or len(texts(input.arguments)) > 1)`},
		{"nested brackets", strings.Repeat("(", 1500) + "true" + strings.Repeat(")", 1500)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c, err := Compile(tt.source, rowOf(t, phases.ToolPostCall), nil)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if _, err := c.Eval(worstEnv()); err != nil {
				t.Errorf("Eval: %v", err)
			}
		})
	}
}

// What would take too long is refused, or ends with an error that says so.
func TestTooMuchWorkIsRefused(t *testing.T) {
	t.Parallel()

	nest := func(open, inside, closing string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(closing, n)
	}
	tests := []struct{ name, source string }{
		{"regular expression over a long text per entry", `any(1..1000, input.result matches "(x+x+)+y")`},
		{"case mapping per entry", `any(1..1000, upper(input.result) == "")`},
		{"long comparison of json per entry", `all(1..1000, [policy["a/b"]] == [input.arguments])`},
		{"lists of lists of lists", `all(map(1..1000, policy["a/b"]), # == policy["a/b"])`},
		{"pieces searched per entry", `any(1..1000, "b" in split(input.result, ""))`},
		{"doubled per level", strings.Repeat("map(", 40) + "input.touched_paths" + strings.Repeat(", # + #)", 40) + " == []"},
		{"texts per entry", `all(1..1000, len(texts(input.arguments)) > 1)`},
		{"nested predicates", `any(1..1000, all(1..1000, # == 0))`},
		{"chained comparisons", nest("1 < (", "1", ") < 1", 60)},
		{"short conditionals", nest("(", "flags.a", " ?: flags.b)", 60)},
		{"forms of a function", nest("trim(", `"a"`, `, "a")`, 60) + ` == ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c, err := Compile(tt.source, rowOf(t, phases.ToolPostCall), nil)
			if err == nil {
				if _, err = c.Eval(worstEnv()); !errors.Is(err, errWork) {
					t.Errorf("Eval: %v", err)
				}
			}
		})
	}
}
