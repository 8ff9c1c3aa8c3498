package cond

import (
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
)

// The functions that are put into programs. They are not identifiers, so that a source cannot name them.
const (
	loadName   = "·load"
	countName  = "·count"
	listName   = "·list"
	rangeName  = "·range"
	toJSONName = "·toJSON"
	textsName  = "·texts"
)

// call returns a call of one of our functions in place of a node. A nil type is any.
func call(name string, at ast.Node, t reflect.Type, args ...ast.Node) ast.Node {
	n := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
	n.SetLocation(at.Location())
	if t != nil {
		n.SetType(t)
	}
	return n
}

// functions are the functions of conditions: how they are called, and what they give. Where expr has several
// forms of a function only the first is allowed: its type checker visits the arguments once per form, which doubles
// the work with each nesting. Clock, sorting, base64 and all that multiplies sizes are missing.
//
//nolint:gochecknoglobals // an immutable table
var functions = [][2]string{
	{"all(list, p), any(list, p), none(list, p), one(list, p)", "whether p holds for all, some, no or one entry: `any(input.touched_paths, # endsWith \".env\")`. `#` is the entry, `#index` its number"},
	{"count(list, p), sum(list, p)", "how many entries hold; the sum of p"},
	{"find(list, p), findLast(list, p), findIndex(list, p), findLastIndex(list, p)", "the first or last entry that holds, or its number"},
	{"filter(list, p), map(list, p)", "the entries that hold; p of each"},
	{"texts(x)", "all texts in x, at any depth: `any(texts(input.arguments), # contains \"rm -rf\")`"},
	{"toJSON(x)", "x as JSON without white space, names included; texts are escaped"},
	{"len(x)", "characters of a text, entries of a list or object"},
	{"lower(text), upper(text), trim(text)", "in lower or upper case, without outer white space"},
	{"trimPrefix(text, start), trimSuffix(text, end)", "without that beginning or end"},
	{"hasPrefix(text, start), hasSuffix(text, end)", "as `startsWith` and `endsWith`"},
	{"indexOf(text, part), lastIndexOf(text, part)", "where the part begins, from 0; -1 if absent"},
	{"split(text, separator)", "the list of its parts"},
	{"first(list), last(list)", "an entry; nil if the list is empty"},
	{"get(x, key), keys(object), values(object)", "a member or entry, nil if missing; all names; all values"},
	{"string(x), int(x), float(x), type(x)", "x converted; the name of its type"},
	{"abs(n), ceil(n), floor(n), round(n), min(n, …), max(n, …)", "numbers"},
}

// Functions returns the functions of conditions, each row with how they are called and what they give.
func Functions() [][2]string { return functions }

// arities are the fewest and most arguments of each function.
var arities = sync.OnceValue(func() map[string][2]int { //nolint:gochecknoglobals // computed once
	all := map[string][2]int{}
	for _, row := range functions {
		for usage := range strings.SplitSeq(row[0], "), ") {
			name, arguments, _ := strings.Cut(usage, "(")
			n := strings.Count(arguments, ",") + 1
			if all[name] = [2]int{n, n}; strings.Contains(arguments, "…") {
				all[name] = [2]int{1, MaxNodes}
			}
		}
	}
	return all
})

//nolint:gochecknoglobals // an immutable table
var predicates = []string{"all", "any", "none", "one", "count", "findIndex", "findLastIndex", "sum", "find", "findLast", "filter", "map"}

// operators are the binary operators, with the factor of an operand's bytes.
//
//nolint:gochecknoglobals // an immutable table
var operators = map[string]int{
	"and": 0, "&&": 0, "or": 0, "||": 0, "??": 0, "-": 0, "*": 0, "/": 0, "%": 0, "**": 0, "^": 0, "..": 0,
	"==": 1, "!=": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "+": 1, "contains": 1, "startsWith": 1, "endsWith": 1,
	"in": 4, "matches": matchWork,
}

// walker goes once over a parsed condition, before types are known. It refuses
// what conditions must not do, and replaces names by loads.
type walker struct {
	scope *scope
	slots []slot
	quick *quick
	index map[string]int
	// seen holds the visited nodes. The parser puts one node at two places for
	// a < b < c and a ?: b; nested, that doubles the work of later passes.
	seen   map[ast.Node]bool
	inside bool // set within a predicate; entry is the entries' type, if known
	entry  reflect.Type
}

// visit checks and rewrites the tree at node. It returns the type of the value in the input; nil if it is unknown.
//
//nolint:gocyclo // one case for each kind of node
func (w *walker) visit(node *ast.Node) (reflect.Type, error) {
	if w.seen[*node] {
		return nil, mistakef(*node, "a < b < c and a ?: b are not available; write what is meant in full")
	}
	w.seen[*node] = true
	switch n := (*node).(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return nil, nil
	case *ast.IdentifierNode, *ast.MemberNode:
		return w.name(node)
	case *ast.ChainNode:
		return w.visit(&n.Node)
	case *ast.PointerNode:
		if n.Name != "" && n.Name != "index" {
			return nil, mistakef(n, "unknown name #%s; there are # and #index", n.Name)
		}
		return w.entry, nil
	case *ast.BinaryNode:
		return nil, w.binary(node, n)
	case *ast.BuiltinNode:
		if n.Name == "toJSON" {
			return nil, w.own(node, n.Name, n.Arguments)
		}
		return w.builtin(n)
	case *ast.SliceNode:
		if err := w.visitAll(&n.From, &n.To); err != nil {
			return nil, err
		}
		return w.visit(&n.Node)
	case *ast.UnaryNode:
		return nil, w.visitAll(&n.Node)
	case *ast.ConditionalNode:
		return nil, w.visitAll(&n.Cond, &n.Exp1, &n.Exp2)
	case *ast.PairNode:
		return nil, w.visitAll(&n.Key, &n.Value)
	case *ast.ArrayNode:
		return nil, w.visitList(n.Nodes)
	case *ast.MapNode:
		return nil, w.visitList(n.Pairs)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok && callee.Value == "texts" {
			return nil, w.own(node, callee.Value, n.Arguments)
		}
		return nil, unknownCall(n)
	default:
		return nil, mistakef(n, "a condition is one expression, without let, sequences and byte texts")
	}
}

func (w *walker) visitAll(nodes ...*ast.Node) error {
	for _, node := range nodes {
		if *node != nil {
			if _, err := w.visit(node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) visitList(nodes []ast.Node) error {
	for i := range nodes {
		if err := w.visitAll(&nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// name visits a name, ".name", ["name"] and [index]. A chain that begins with a name of the scope becomes one load.
func (w *walker) name(node *ast.Node) (reflect.Type, error) {
	if root, steps, ok := chain(*node); ok {
		s, ok, err := w.scope.resolve(root, steps)
		if err != nil {
			return nil, err
		}
		if ok {
			w.load(node, s)
			return s.typ, nil
		}
	}
	n, isMember := (*node).(*ast.MemberNode)
	if !isMember {
		return nil, nil
	}
	base, err := w.visit(&n.Node)
	if err != nil {
		return nil, err
	}
	if err := w.visitAll(&n.Property); err != nil {
		return nil, err
	}
	if name, isName := n.Property.(*ast.StringNode); isName {
		return member(base, "#", name.Value, name)
	}
	return entryOf(base), nil
}

func (w *walker) load(node *ast.Node, s slot) {
	key := s.leaf.name + "\x00" + strings.Join(s.path, "\x00")
	i, known := w.index[key]
	if !known {
		i = len(w.slots)
		w.index[key] = i
		w.slots = append(w.slots, s)
	}
	*node = call(loadName, *node, plainType(s.typ), &ast.IdentifierNode{Value: "$env"}, &ast.IntegerNode{Value: i})
}

func (w *walker) binary(node *ast.Node, n *ast.BinaryNode) error {
	if err := w.visitAll(&n.Left, &n.Right); err != nil {
		return err
	}
	switch _, known := operators[n.Operator]; {
	case !known:
		return mistakef(n, "unknown operator %s", n.Operator)
	case n.Operator == "matches":
		_, err := instructions(n.Right)
		return err
	case n.Operator == "..":
		from, okFrom := constant(n.Left)
		to, okTo := constant(n.Right)
		if !okFrom || !okTo {
			*node = call(rangeName, n, reflect.TypeFor[[]int](), n.Left, n.Right)
		} else if _, err := span(from, to); err != nil {
			return mistakef(n, "%v", err)
		}
	}
	return nil
}

// instructions returns the length of a regular expression's program.
func instructions(pattern ast.Node) (int, error) {
	constant, ok := pattern.(*ast.StringNode)
	if !ok {
		return 0, mistakef(pattern, "the right side of matches must be a constant text")
	}
	re, err := syntax.Parse(constant.Value, syntax.Perl)
	if err != nil {
		return 0, mistakef(pattern, "%v", err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, mistakef(pattern, "%v", err)
	}
	return len(prog.Inst), nil
}

func constant(node ast.Node) (int, bool) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.UnaryNode:
		v, ok := constant(n.Node)
		if n.Operator == "-" {
			v = -v
		}
		return v, ok && (n.Operator == "-" || n.Operator == "+")
	default:
		return 0, false
	}
}

func (w *walker) builtin(n *ast.BuiltinNode) (reflect.Type, error) {
	if slices.Contains(predicates, n.Name) {
		return w.predicate(n)
	}
	return nil, w.arguments(n, n.Name, n.Arguments)
}

func (w *walker) arguments(n ast.Node, name string, arguments []ast.Node) error {
	arity, ok := arities()[name]
	if !ok {
		return mistakef(n, "the function %q is not available in conditions", name)
	}
	if len(arguments) < arity[0] || len(arguments) > arity[1] {
		return mistakef(n, "%s takes %d arguments here, not %d", name, arity[0], len(arguments))
	}
	return w.visitList(arguments)
}

// own replaces a call of a function that expr does not have, or has otherwise.
func (w *walker) own(node *ast.Node, name string, arguments []ast.Node) error {
	if err := w.arguments(*node, name, arguments); err != nil {
		return err
	}
	typ := map[string]reflect.Type{"toJSON": reflect.TypeFor[string](), "texts": reflect.TypeFor[[]string]()}[name]
	*node = call("·"+name, *node, typ, &ast.IdentifierNode{Value: "$env"}, arguments[0], &ast.IntegerNode{})
	return nil
}

func (w *walker) predicate(n *ast.BuiltinNode) (reflect.Type, error) {
	if w.inside {
		return nil, mistakef(n, "%s stands inside another predicate; their work would multiply", n.Name)
	}
	list, err := w.visit(&n.Arguments[0])
	if err != nil {
		return nil, err
	}
	w.inside, w.entry = true, entryOf(list)
	defer func() { w.inside, w.entry = false, nil }()
	for i := range n.Arguments[1:] { // none for the count or the sum of the entries themselves
		p, ok := n.Arguments[i+1].(*ast.PredicateNode)
		if !ok {
			return nil, mistakef(n, "%s wants a predicate", n.Name)
		}
		if err := w.visitAll(&p.Node); err != nil {
			return nil, err
		}
	}
	switch n.Name {
	case "filter":
		return list, nil
	case "find", "findLast":
		return w.entry, nil
	}
	return nil, nil
}

func unknownCall(n *ast.CallNode) error {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return mistakef(n, "values have no methods%s", methodHint(n.Callee))
	}
	if _, ok := builtin.Index[callee.Value]; ok {
		return mistakef(n, "the function %q is not available in conditions", callee.Value)
	}
	return mistakef(n, "unknown function %q%s", callee.Value, functionHint(callee.Value))
}

// meter wraps operands whose bytes are looked at in calls that count them.
type meter struct{}

// Visit implements [ast.Visitor]; a node's children are visited before it.
func (meter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		if n.Operator == "matches" {
			length, _ := instructions(n.Right) // the walker has compiled it before
			put(countName, &n.Left, length*matchWork)
		} else if work := operators[n.Operator]; work > 0 {
			count(&n.Left, work)
			count(&n.Right, work)
		}
	case *ast.BuiltinNode:
		if slices.Contains(predicates, n.Name) {
			steps := stepCounter(1)
			for i := range n.Arguments[1:] {
				ast.Walk(&n.Arguments[i+1], &steps)
			}
			put(listName, &n.Arguments[0], int(steps))
			return
		}
		for i := range n.Arguments {
			put(countName, &n.Arguments[i], functionWork)
		}
	}
}

// count wraps an operator's operand, unless it is a number, a literal, or a load, which has counted already.
func count(operand *ast.Node, work int) {
	switch n := (*operand).(type) {
	case *ast.NilNode, *ast.StringNode:
		return
	case *ast.ArrayNode:
		if !slices.ContainsFunc(n.Nodes, func(n ast.Node) bool { _, isText := n.(*ast.StringNode); return !isText }) {
			return // as long as the source at most
		}
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && name.Value == loadName {
			return
		}
	}
	switch (*operand).Type().Kind() {
	case reflect.Bool, reflect.Int, reflect.Float64:
	default:
		put(countName, operand, work)
	}
}

func put(name string, node *ast.Node, n int) {
	t := (*node).Type()
	if t.Kind() == reflect.Interface {
		t = nil
	}
	*node = call(name, *node, t, &ast.IdentifierNode{Value: "$env"}, *node, &ast.IntegerNode{Value: n})
}

type stepCounter int

func (c *stepCounter) Visit(*ast.Node) { *c++ }
