package cond

import (
	"maps"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"github.com/grapnelhq/grapnel/phases"
)

// The functions that the walker puts into a program. A source cannot name
// them: these are no identifiers.
const (
	loadName  = "·load"
	listName  = "·list"
	rangeName = "·range"
)

// walker goes once over a parsed condition. It refuses what conditions must not
// do, replaces names by loads, and adds up the worst case.
type walker struct {
	scope *scope
	slots []slot
	index map[string]int
	// seen holds the nodes that were visited. The parser puts one node at two
	// places for a < b < c and a ?: b; nested, that would double the work of
	// every later pass with each level.
	seen map[ast.Node]bool
	// entry is what # stands for; nil outside predicates.
	entry *bound
	// times is how often the node at hand is evaluated.
	times float64
	nanos float64

	functions  map[string]function
	predicates map[string]kind
}

// newWalker makes the walker for one condition of a phase.
func newWalker(row phases.Row, sees func(grant string) bool) *walker {
	return &walker{
		scope: newScope(row, sees), index: map[string]int{}, seen: map[ast.Node]bool{}, times: 1,
		functions: functions(), predicates: predicates(),
	}
}

// call makes a call of one of our own functions in the place of a node.
func call(name string, at ast.Node, t reflect.Type, args ...ast.Node) ast.Node {
	n := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
	n.SetLocation(at.Location())
	if t != nil {
		n.SetType(t)
	}
	return n
}

// visit checks and rewrites the tree at node and returns the bound of its
// value.
func (w *walker) visit(node *ast.Node) (bound, error) {
	if w.seen[*node] {
		return bound{}, mistakef(*node, "a < b < c and a ?: b are not available; write what is meant in full")
	}
	w.seen[*node] = true
	w.charge(nanosNode)
	switch n := (*node).(type) {
	case *ast.NilNode:
		return scalar(kindAny), nil
	case *ast.BoolNode:
		return scalar(kindBool), nil
	case *ast.IntegerNode:
		return scalar(kindInt), nil
	case *ast.FloatNode:
		return scalar(kindFloat), nil
	case *ast.StringNode:
		return bound{shape: &shape{kind: kindText}, bytes: float64(len(n.Value))}, nil
	case *ast.IdentifierNode:
		return w.identifier(node, n)
	case *ast.MemberNode:
		return w.member(node, n)
	case *ast.ChainNode:
		return w.visit(&n.Node)
	case *ast.PointerNode:
		return w.pointer(n)
	case *ast.UnaryNode:
		return w.visit(&n.Node)
	case *ast.BinaryNode:
		return w.binary(node, n)
	case *ast.ConditionalNode:
		return w.conditional(n)
	case *ast.SliceNode:
		return w.slice(n)
	case *ast.ArrayNode:
		return w.entries(n.Nodes, kindList)
	case *ast.MapNode:
		return w.entries(n.Pairs, kindAny)
	case *ast.PairNode:
		return w.pair(n)
	case *ast.BuiltinNode:
		return w.builtin(n)
	case *ast.CallNode:
		return bound{}, w.unknownCall(n)
	default:
		return bound{}, mistakef(n, "a condition is one expression, without let, sequences and byte texts")
	}
}

// pointer visits #, #index and the # that a leading dot stands for.
func (w *walker) pointer(n *ast.PointerNode) (bound, error) {
	switch {
	case w.entry == nil:
		return bound{}, mistakef(n, "# stands only inside a predicate")
	case n.Name == "":
		return *w.entry, nil
	case n.Name == "index":
		return scalar(kindInt), nil
	default:
		return bound{}, mistakef(n, "unknown name #%s; there are # and #index", n.Name)
	}
}

// conditional visits a ? b : c. Either side may be the one that runs, so both
// are charged.
func (w *walker) conditional(n *ast.ConditionalNode) (bound, error) {
	if _, err := w.visit(&n.Cond); err != nil {
		return bound{}, err
	}
	a, err := w.visit(&n.Exp1)
	if err != nil {
		return bound{}, err
	}
	b, err := w.visit(&n.Exp2)
	if err != nil {
		return bound{}, err
	}
	return either(a, b), nil
}

// slice visits list[from:to]. A slice shares its memory, so it costs nothing
// and weighs at most what it is cut from.
func (w *walker) slice(n *ast.SliceNode) (bound, error) {
	for _, end := range []*ast.Node{&n.From, &n.To} {
		if *end == nil {
			continue
		}
		if _, err := w.visit(end); err != nil {
			return bound{}, err
		}
	}
	return w.visit(&n.Node)
}

// entries visits what stands in a literal list or object.
func (w *walker) entries(nodes []ast.Node, k kind) (bound, error) {
	b := bound{shape: &shape{kind: k}, items: float64(len(nodes))}
	for i := range nodes {
		entry, err := w.visit(&nodes[i])
		if err != nil {
			return bound{}, err
		}
		b.bytes += entryBytes + entry.bytes
	}
	return b, nil
}

// pair visits one entry of a literal object.
func (w *walker) pair(n *ast.PairNode) (bound, error) {
	key, err := w.visit(&n.Key)
	if err != nil {
		return bound{}, err
	}
	value, err := w.visit(&n.Value)
	value.bytes += key.bytes
	return value, err
}

// binary visits both sides of an operator and charges for what it does with
// them. Logic and arithmetic cost no more than the step itself.
func (w *walker) binary(node *ast.Node, n *ast.BinaryNode) (bound, error) {
	l, err := w.visit(&n.Left)
	if err != nil {
		return bound{}, err
	}
	r, err := w.visit(&n.Right)
	if err != nil {
		return bound{}, err
	}
	switch n.Operator {
	case "and", "&&", "or", "||":
	case "==", "!=", "<", ">", "<=", ">=":
		w.compare(l, r)
	case "in":
		w.search(l, r)
	case "contains", "startsWith", "endsWith":
		w.charge((l.bytes + r.bytes) * nanosScan)
	case "matches":
		err = w.match(l, n.Right)
	case "??":
		return either(l, r), nil
	case "+":
		// It joins texts: the one operator whose result is larger than either.
		w.charge((l.bytes + r.bytes) * nanosScan)
		sum := either(l, r)
		sum.bytes = l.bytes + r.bytes
		return sum, nil
	case "-", "*", "/", "%", "**", "^":
		return scalar(kindFloat), nil
	case "..":
		return w.span(node, n)
	default:
		err = mistakef(n, "unknown operator %s", n.Operator)
	}
	return scalar(kindBool), err
}

// span bounds a range: here where its ends are constants, else while running.
func (w *walker) span(node *ast.Node, n *ast.BinaryNode) (bound, error) {
	b := bound{shape: &shape{kind: kindList, elem: &shape{kind: kindInt}}, items: MaxItems, bytes: MaxItems * entryBytes}
	w.charge(MaxItems)
	from, okFrom := constant(n.Left)
	to, okTo := constant(n.Right)
	if !okFrom || !okTo {
		*node = call(rangeName, n, nil, n.Left, n.Right)
		return b, nil
	}
	if _, err := span(from, to); err != nil {
		return bound{}, mistakef(n, "%v", err)
	}
	b.items = float64(max(0, to-from+1))
	b.bytes = b.items * entryBytes
	return b, nil
}

// constant reads a whole number with its sign.
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

// builtin visits a call of a function of expr, if conditions may call it.
func (w *walker) builtin(n *ast.BuiltinNode) (bound, error) {
	if result, ok := w.predicates[n.Name]; ok {
		return w.predicate(n, result)
	}
	f, ok := w.functions[n.Name]
	if !ok {
		return bound{}, mistakef(n, "the function %q is not available in conditions", n.Name)
	}
	if len(n.Arguments) < f.min || len(n.Arguments) > f.max {
		return bound{}, mistakef(n, "%s takes %d arguments here, not %d", n.Name, f.min, len(n.Arguments))
	}
	out := bound{shape: &shape{kind: f.result}, bytes: entryBytes}
	for i := range n.Arguments {
		arg, err := w.visit(&n.Arguments[i])
		if err != nil {
			return bound{}, err
		}
		w.charge(nanosEntry + arg.bytes*f.perByte)
		out.bytes += arg.bytes * f.growth
	}
	if f.result == kindList || f.result == kindAny {
		out.items = out.bytes / entryBytes
	}
	return out, nil
}

// predicate visits a function that runs a predicate over a list. What is not
// known to be a list is checked while running, also for its length.
func (w *walker) predicate(n *ast.BuiltinNode, result kind) (bound, error) {
	if w.entry != nil {
		return bound{}, mistakef(n, "%s stands inside another predicate; their work would multiply", n.Name)
	}
	list, err := w.visit(&n.Arguments[0])
	if err != nil {
		return bound{}, err
	}
	if list.shape.kind != kindList {
		n.Arguments[0] = call(listName, n.Arguments[0], nil, n.Arguments[0])
		list.items = MaxItems
	}
	body, err := w.body(n, list)
	if err != nil {
		return bound{}, err
	}
	items := max(1, list.items)
	w.charge(items * nanosEntry)
	switch {
	case n.Name == "map":
		return bound{shape: &shape{kind: kindList, elem: body.shape}, items: items, bytes: items * (body.bytes + entryBytes)}, nil
	case result == kindList:
		return list, nil
	case result == kindAny:
		return bound{shape: entryShape(list), bytes: list.bytes, items: list.bytes / entryBytes}, nil
	}
	return scalar(result), nil
}

// body visits the predicate itself, as often as the list may have entries.
func (w *walker) body(n *ast.BuiltinNode, list bound) (bound, error) {
	items := max(1, list.items)
	entry := bound{shape: entryShape(list), bytes: list.bytes / items, items: list.bytes / entryBytes / items}
	if len(n.Arguments) < 2 {
		return entry, nil // count and sum of the entries themselves
	}
	p, ok := n.Arguments[1].(*ast.PredicateNode)
	if !ok {
		return bound{}, mistakef(n, "%s wants a predicate", n.Name)
	}
	outside := w.times
	w.entry, w.times = &entry, w.times*items
	defer func() { w.entry, w.times = nil, outside }()
	return w.visit(&p.Node)
}

// entryShape is the shape of # in a predicate over a list.
func entryShape(list bound) *shape {
	if list.shape.kind == kindList && list.shape.elem != nil {
		return list.shape.elem
	}
	return &shape{}
}

// unknownCall says why something cannot be called.
func (w *walker) unknownCall(n *ast.CallNode) error {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return mistakef(n, "values have no methods")
	}
	if _, ok := builtin.Index[callee.Value]; ok {
		return mistakef(n, "the function %q is not available in conditions", callee.Value)
	}
	known := slices.Sorted(maps.Keys(w.functions))
	known = append(known, slices.Sorted(maps.Keys(w.predicates))...)
	return mistakef(n, "unknown function %q%s", callee.Value, phases.DidYouMean(callee.Value, known))
}
