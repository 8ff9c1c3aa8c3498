package cond

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/grapnelhq/grapnel/phases"
)

// errNoFrame means that a program was run without its environment.
var errNoFrame = errors.New("a condition's program runs only in Eval")

// Condition is a compiled condition. It does not change, and is safe for
// concurrent use. A nil Condition is always true.
type Condition struct {
	source  string
	program *vm.Program
	// slots are what the program can load, by number.
	slots []slot
}

// Env is what a condition may look at. It is read and never changed; making
// one costs nothing, because values are taken from it when they are needed.
type Env struct {
	// Context is the dispatch's context. Nil is a zero one.
	Context *phases.Context
	// Input is the phase's input, whole. Nil is a zero one.
	Input phases.Input
	// Policies is the turn's policy set so far.
	Policies []phases.PolicyEntry
	// Tool is the name behind tool.name. Empty means the input's field "tool",
	// if it has one.
	Tool string
}

// Compile checks and compiles a condition for hooks of one phase, whose row
// says which fields the input has. Sees says which fields and sets (see
// phases.Visible) the author of the condition may look at; nil means all of them. An
// error is an [*Error]; it says where the mistake is, and what is probably meant.
func Compile(source string, row phases.Row, sees func(name string) bool) (c *Condition, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, located(source, fmt.Errorf("cannot be compiled: %v", r))
		}
	}()
	if err := checkSource(source); err != nil {
		return nil, located("", err)
	}
	w := newWalker(row, sees)
	program, err := build(source, w)
	if err != nil {
		return nil, located(source, err)
	}
	return &Condition{source: source, program: program, slots: w.slots}, nil
}

// checkSource refuses what the parser should not even begin with: its depth
// grows with the source, whatever the number of nodes.
func checkSource(source string) error {
	switch {
	case len(source) > MaxSource:
		return fmt.Errorf("the condition has %d bytes; at most %d", len(source), MaxSource)
	case !utf8.ValidString(source):
		return errors.New("the condition is not valid UTF-8")
	case strings.TrimSpace(source) == "":
		return errors.New("the condition is empty")
	}
	return nil
}

// build is expr's own pipeline with our walk behind the parser: names are
// resolved and work is bounded before anything else looks at the tree.
func build(source string, w *walker) (*vm.Program, error) {
	config := conf.New(map[string]any{})
	config.Expect, config.ExpectAny = reflect.Bool, true
	config.MaxNodes = MaxNodes
	config.DisableIfOperator = true
	config.Functions = conf.FunctionsTable{
		loadName:  {Name: loadName, Func: load},
		listName:  {Name: listName, Func: func(args ...any) (any, error) { return asList(args[0]) }},
		rangeName: {Name: rangeName, Func: func(args ...any) (any, error) { return span(args[0], args[1]) }},
	}
	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return nil, err
	}
	if _, err := w.visit(&tree.Node); err != nil {
		return nil, err
	}
	if w.nanos > maxNanos {
		return nil, mistakef(tree.Node, "could take %.1f times as long as a condition may; compare less, or in fewer predicates", w.nanos/maxNanos)
	}
	if _, err := checker.Check(tree, config); err != nil {
		if _, placed := errors.AsType[*file.Error](err); !placed {
			err = mistakef(tree.Node, "must give true or false: %v", err)
		}
		return nil, err
	}
	if err := optimizer.Optimize(&tree.Node, config); err != nil {
		return nil, err
	}
	return compiler.Compile(tree, config)
}

// Source returns the text that the condition was compiled from; "" for nil.
func (c *Condition) Source() string {
	if c == nil {
		return ""
	}
	return c.source
}

// Eval says whether the condition holds. An error is a [*phases.Error] with
// the cause "condition": a condition that cannot be evaluated is not false.
// The message may quote values and is not for users.
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
	out, err := vm.Run(c.program, &frame{cond: c, env: env})
	if err != nil {
		return false, failure(err)
	}
	holds, isBool := out.(bool)
	if !isBool {
		return false, failure(fmt.Errorf("gives %s, not true or false", typeName(out)))
	}
	return holds, nil
}

// failure gives a run-time error its cause, and its place on one line.
func failure(err error) *phases.Error {
	message := err.Error()
	if at, ok := errors.AsType[*file.Error](err); ok {
		message = fmt.Sprintf("%d:%d: %s", at.Line, at.Column+1, at.Message)
	}
	return &phases.Error{Code: phases.CauseCondition, Message: message, Err: err}
}

// frame is one evaluation.
// It lives for one Eval and belongs to one goroutine.
type frame struct {
	cond *Condition
	env  Env
	// values are the slots that were loaded; few is where they live if there
	// are few.
	values []value
	few    [3]value
	// decoded are embedded JSON documents by the leaf's name, since several
	// slots may lie in one.
	decoded map[string]any
}

// value is a loaded slot; nil is a value too.
type value struct {
	v      any
	loaded bool
}

// load returns the value of a slot, read and measured at its first use.
func (f *frame) load(i int) (any, error) {
	if f.values == nil {
		if n := len(f.cond.slots); n <= len(f.few) {
			f.values = f.few[:n]
		} else {
			f.values = make([]value, n)
		}
	}
	if known := &f.values[i]; known.loaded {
		return known.v, nil
	}
	s := &f.cond.slots[i]
	v, err := f.read(s)
	if err == nil {
		v, err = follow(v, s.path)
	}
	if err == nil {
		err = checkSize(v)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w", s.name, err)
	}
	f.values[i] = value{v, true}
	return v, nil
}

// read reads a leaf. Only what has to be decoded is worth keeping.
func (f *frame) read(s *slot) (any, error) {
	if s.leaf.shape.kind != kindAny {
		return s.leaf.read(&f.env)
	}
	if v, ok := f.decoded[s.leaf.name]; ok {
		return v, nil
	}
	v, err := s.leaf.read(&f.env)
	if err != nil {
		return nil, err
	}
	if f.decoded == nil {
		f.decoded = map[string]any{}
	}
	f.decoded[s.leaf.name] = v
	return v, nil
}
