package cond

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/grapnelhq/grapnel/phases"
)

// Condition is a compiled condition. It is immutable and safe for concurrent use. A nil Condition is always true.
type Condition struct {
	source  string
	program *vm.Program
	slots   []slot // what the program loads, by number
	quick   *quick // instead of the program; nil for most kinds of conditions
}

// Env is what a condition may look at. Eval only reads it.
type Env struct {
	Context  *phases.Context // nil is a zero one
	Input    phases.Input    // nil is a zero one
	Policies []phases.PolicyEntry
	// Tool is the value of tool.name; empty means the input's field "tool".
	Tool string
}

// Compile checks and compiles a condition for hooks of one phase. Sees says which input fields and sets (see
// phases.Visible) the author may look at; nil means all. An error is an [*Error].
func Compile(source string, row phases.Row, sees func(name string) bool) (c *Condition, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, located(source, fmt.Errorf("cannot be compiled: %v", r))
		}
	}()
	switch { // before the parser, whose depth grows with the source
	case len(source) > MaxSource:
		return nil, located("", fmt.Errorf("the condition has %d bytes; at most %d", len(source), MaxSource))
	case !utf8.ValidString(source):
		return nil, located("", errors.New("the condition is not valid UTF-8"))
	case strings.TrimSpace(source) == "":
		return nil, located("", errors.New("the condition is empty"))
	}
	w := &walker{scope: newScope(row, sees), index: map[string]int{}, seen: map[ast.Node]bool{}}
	program, err := build(source, w)
	if err != nil {
		return nil, located(source, err)
	}
	return &Condition{source: source, program: program, slots: w.slots, quick: w.quick}, nil
}

// build is expr's own pipeline with two passes of ours: the walker resolves names
// before anything else looks at the tree, and the meter counts the work.
func build(source string, w *walker) (*vm.Program, error) {
	config := conf.New(map[string]any{})
	config.Expect, config.ExpectAny = reflect.Bool, true
	config.MaxNodes = MaxNodes
	config.DisableIfOperator = true
	config.Functions = conf.FunctionsTable{
		loadName:   {Name: loadName, Func: inFrame((*frame).load)},
		countName:  {Name: countName, Func: inFrame((*frame).count)},
		listName:   {Name: listName, Func: inFrame((*frame).list)},
		toJSONName: {Name: toJSONName, Func: inFrame((*frame).json)},
		textsName:  {Name: textsName, Func: inFrame((*frame).texts)},
		rangeName:  {Name: rangeName, Func: func(args ...any) (any, error) { return span(args[0], args[1]) }},
	}
	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return nil, err
	}
	if _, err := w.visit(&tree.Node); err != nil {
		return nil, err
	}
	w.quick = quicken(tree.Node, w.slots)
	if _, err := checker.Check(tree, config); err != nil {
		if _, placed := errors.AsType[*file.Error](err); !placed {
			err = mistakef(tree.Node, "must give true or false: %v", err)
		}
		return nil, err
	}
	ast.Walk(&tree.Node, meter{})
	if err := optimizer.Optimize(&tree.Node, config); err != nil {
		return nil, err
	}
	return compiler.Compile(tree, config)
}

// Source returns the condition's text; "" for nil.
func (c *Condition) Source() string {
	if c == nil {
		return ""
	}
	return c.source
}

// Policies returns the entries of the policy set that the condition reads, written as policy["domain/key"].
func (c *Condition) Policies() []string {
	if c == nil {
		return nil
	}
	var read []string
	for _, s := range c.slots {
		if s.leaf.grant == phases.SeePolicy {
			read = append(read, s.leaf.name)
		}
	}
	return read
}

// Facts reports whether the condition reads the facts of a call, which [Env.Input] must have then.
func (c *Condition) Facts() bool {
	return c != nil && slices.ContainsFunc(c.slots, func(s slot) bool { return s.leaf.grant == phases.SeeFacts })
}

// Eval reports whether the condition holds. An error is a [*phases.Error] with
// the cause "condition"; its message may quote values and is not for users.
func (c *Condition) Eval(env Env) (holds bool, err error) {
	if c == nil {
		return true, nil
	}
	defer func() {
		if r := recover(); r != nil {
			holds, err = false, failure(fmt.Errorf("%v", r))
		}
	}()
	if env.Context == nil {
		env.Context = &phases.Context{}
	}
	if c.quick != nil {
		if holds, ok := c.quick.eval(&env); ok {
			return holds, nil
		}
	}
	return c.run(env)
}

func (c *Condition) run(env Env) (holds bool, err error) {
	out, err := vm.Run(c.program, &frame{cond: c, env: env, left: MaxWork, values: make([]value, len(c.slots))})
	if err != nil {
		return false, failure(err)
	}
	holds, isBool := out.(bool)
	if !isBool {
		return false, failure(fmt.Errorf("gives %s, not true or false", typeName(out)))
	}
	return holds, nil
}

func failure(err error) *phases.Error {
	message := err.Error()
	if at, ok := errors.AsType[*file.Error](err); ok {
		message = fmt.Sprintf("%d:%d: %s", at.Line, at.Column+1, at.Message)
	}
	return &phases.Error{Code: phases.CauseCondition, Message: message, Err: err}
}

// Error is a mistake in a condition's source, found by [Compile].
type Error struct {
	// Line and Column point at the mistake, from 1, in Unicode scalar values.
	Line, Column int
	Message      string
	Text         string
}

// Place returns where in the condition the mistake is, and Plain the message alone, for whoever shows the place themselves.
func (e *Error) Place() (line, column int) { return e.Line, e.Column }

// Plain returns the message without its place.
func (e *Error) Plain() string { return e.Message }

// Error returns place, message, and the part of the line around the mistake with a caret below it.
func (e *Error) Error() string {
	head := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
	if e.Text == "" {
		return head
	}
	line := []rune(strings.ReplaceAll(e.Text, "\t", " "))
	at := min(e.Column-1, len(line))
	from, to := max(0, at-60), min(len(line), at+40)
	return head + "\n | " + string(line[from:to]) + "\n | " + strings.Repeat(".", at-from) + "^"
}

func mistakef(at ast.Node, format string, args ...any) error {
	return &file.Error{Location: at.Location(), Message: fmt.Sprintf(format, args...)}
}

// located turns any error of a compilation into an Error. An error without a place is placed at the beginning.
func located(source string, err error) *Error {
	at, ok := errors.AsType[*file.Error](err)
	if !ok {
		at = &file.Error{Message: err.Error()}
	}
	_ = at.Bind(file.NewSource(source)) // it is at itself
	text := strings.Split(source, "\n")[at.Line-1]
	before := []rune(text)[:min(at.Column, utf8.RuneCountInString(text))]
	return &Error{Line: at.Line, Column: at.Column + 1, Message: hinted(at.Message, string(before)), Text: text}
}
