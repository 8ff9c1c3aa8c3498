package cond

import (
	"regexp/syntax"

	"github.com/expr-lang/expr/ast"
)

// bound is the most that a value may be: its weight, and its entries if it is
// a list. Inside a predicate the entry at hand (#) has its share of the list,
// so that work which grows in proportion adds up to the whole.
type bound struct {
	shape *shape
	// bytes is reckoned like [MaxBytes]. Floats, because products of bounds
	// overflow every int.
	bytes float64
	items float64
}

// What work costs, in nanoseconds on a slow machine. They are rounded up from
// measurements; only their order of magnitude matters.
const (
	nanosNode    = 40     // one step of the evaluator
	nanosLoad    = 80     // one call of load
	nanosEntry   = 50     // looking at one entry of a list
	nanosCompare = 1. / 8 // comparing one byte of text
	nanosDeep    = 3      // comparing one byte of lists and objects, by reflection
	nanosScan    = 1. / 2 // searching one byte
	nanosMatch   = 10     // one byte through one instruction of a regular expression
)

// charge adds work that is done each time the node at hand is evaluated.
func (w *walker) charge(nanos float64) { w.nanos += nanos * w.times }

// scalar is the bound of a number or a bool.
func scalar(k kind) bound { return bound{shape: &shape{kind: k}, bytes: entryBytes} }

// either is the bound of a value that is one of two.
func either(a, b bound) bound {
	sh := a.shape
	if a.shape.kind != b.shape.kind {
		sh = &shape{}
	} else if a.shape != b.shape {
		sh = &shape{kind: a.shape.kind}
	}
	return bound{shape: sh, bytes: max(a.bytes, b.bytes), items: max(a.items, b.items)}
}

// compare charges for == and its like.
func (w *walker) compare(a, b bound) {
	perByte := float64(nanosDeep)
	if a.shape.kind == kindText || b.shape.kind == kindText {
		perByte = nanosCompare
	}
	w.charge(min(a.bytes, b.bytes) * perByte)
}

// search charges for a look at every entry of a list.
func (w *walker) search(needle, list bound) {
	perByte := float64(nanosDeep)
	if needle.shape.kind == kindText {
		perByte = nanosCompare
	}
	items := max(1, list.items)
	w.charge(items*nanosEntry + min(list.bytes, items*needle.bytes)*perByte)
}

// match charges for a regular expression, which must be constant: one that is
// put together while running could not be measured.
func (w *walker) match(text bound, pattern ast.Node) error {
	constant, ok := pattern.(*ast.StringNode)
	if !ok {
		return mistakef(pattern, "the right side of matches must be a constant text")
	}
	re, err := syntax.Parse(constant.Value, syntax.Perl)
	if err != nil {
		return mistakef(pattern, "%v", err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return mistakef(pattern, "%v", err)
	}
	w.charge(text.bytes * nanosMatch * float64(len(prog.Inst)))
	return nil
}

// function is a builtin function that conditions may call.
type function struct {
	// min and max arguments. Where the evaluator has several forms of a
	// function only the first is allowed: its type checker visits the arguments
	// once per form, which doubles the work with each nesting.
	min, max int
	// result is what it gives.
	result kind
	// growth is the weight of the result over that of the arguments.
	growth float64
	// perByte is the time for each byte of the arguments.
	perByte float64
}

// functions lists what conditions may call besides predicates. Missing are the
// clock, all that multiplies sizes (repeat, replace, join, concat, flatten) or
// sorts, JSON and base64, and what works on anything (reduce).
func functions() map[string]function {
	return map[string]function{
		"len":         {1, 1, kindInt, 0, 1},
		"lower":       {1, 1, kindText, 3, 10},
		"upper":       {1, 1, kindText, 3, 10},
		"trim":        {1, 1, kindText, 1, 5},
		"trimPrefix":  {2, 2, kindText, 1, nanosCompare},
		"trimSuffix":  {2, 2, kindText, 1, nanosCompare},
		"hasPrefix":   {2, 2, kindBool, 0, nanosCompare},
		"hasSuffix":   {2, 2, kindBool, 0, nanosCompare},
		"indexOf":     {2, 2, kindInt, 0, nanosScan},
		"lastIndexOf": {2, 2, kindInt, 0, 2},
		"split":       {2, 2, kindList, entryBytes + 1, 10},
		"string":      {1, 1, kindText, 2, 10},
		"type":        {1, 1, kindText, 1, 0},
		"int":         {1, 1, kindInt, 0, 1},
		"float":       {1, 1, kindFloat, 0, 20},
		"abs":         {1, 1, kindAny, 1, 0},
		"ceil":        {1, 1, kindFloat, 0, 0},
		"floor":       {1, 1, kindFloat, 0, 0},
		"round":       {1, 1, kindFloat, 0, 0},
		"min":         {1, MaxNodes, kindAny, 1, 10},
		"max":         {1, MaxNodes, kindAny, 1, 10},
		"first":       {1, 1, kindAny, 1, 0},
		"last":        {1, 1, kindAny, 1, 0},
		"get":         {2, 2, kindAny, 1, nanosCompare},
		"keys":        {1, 1, kindList, 1, 10},
		"values":      {1, 1, kindList, 1, 10},
	}
}

// predicates lists the functions that run a predicate over a list, with what
// they give. kindAny stands for an entry of the list.
func predicates() map[string]kind {
	return map[string]kind{
		"all": kindBool, "any": kindBool, "none": kindBool, "one": kindBool,
		"count": kindInt, "findIndex": kindInt, "findLastIndex": kindInt, "sum": kindFloat,
		"find": kindAny, "findLast": kindAny,
		"filter": kindList, "map": kindList,
	}
}
