package cond

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestQuick: conditions of the usual kind run without the program and without garbage, with the
// program's answer; others are left to it.
func TestQuick(t *testing.T) {
	row := rowOf(t, phases.ToolPostCall)
	env := conditionEnv(`{"n": 3}`, "ok")
	for source, want := range map[string]bool{
		`tool.name == "shell"`: true, `tool.name != "shell"`: true, `tool.name in ["read", "shell"]`: true, `input.outcome == "ok"`: true,
		`turn.mode == "agent" and not flags.quiet`: true, `flags.beta || dir == "/x" && phase != "x"`: true, `not (actor.kind in ["user"])`: true,
		`tool.name startsWith "s"`: false, `dir == workspace.id`: false, `input.arguments.n == 3`: false, `tool.name in [dir]`: false,
		`policy["memory/turn_policy"].recall == "allow"`: false, `"shell" == tool.name`: false, `true`: false,
	} {
		c, err := Compile(source, row, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.quick != nil; got != want {
			t.Errorf("%s: quick = %v", source, got)
			continue
		}
		holds, err := c.Eval(env)
		if slow, errSlow := c.run(env); holds != slow || err != nil || errSlow != nil {
			t.Errorf("%s: %v, %v; the program gives %v, %v", source, holds, err, slow, errSlow)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = c.Eval(env) }); want && n > 0 {
			t.Errorf("%s: %v allocations", source, n)
		}
	}
}

// TestQuickLongText: the caps on what is read hold for quick conditions too.
func TestQuickLongText(t *testing.T) {
	t.Parallel()

	c, err := Compile(`dir != "x"`, rowOf(t, phases.ToolPostCall), nil)
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]bool{MaxBytes / 2: true, MaxBytes/2 + 1: true, MaxBytes + 1: false} {
		holds, err := c.Eval(Env{Context: &phases.Context{Dir: strings.Repeat("x", size)}})
		if holds != want || (err == nil) != want {
			t.Errorf("%d bytes: %v, %v", size, holds, err)
		}
	}
}
