package cond

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/grapnelhq/grapnel/phases"
)

// slot is one value that a condition reads: a leaf, or what is at a path in it.
// A program holds calls that load slots by number, so that nothing is read,
// decoded or measured before the evaluation comes to it.
type slot struct {
	// name is the whole of it, for messages.
	name string
	leaf leaf
	// path leads on into embedded JSON.
	path []string
}

// step is one ".name" or ["name"] of a chain.
type step struct {
	name string
	// optional is written "?.": nil before it makes the whole chain nil.
	optional bool
	// at is where a mistake in the name is shown.
	at ast.Node
}

// chain takes "a.b.c" apart. It fails on anything that is not a name followed
// by constant names.
func chain(node ast.Node) (root *ast.IdentifierNode, steps []step, ok bool) {
	for {
		switch n := node.(type) {
		case *ast.IdentifierNode:
			slices.Reverse(steps)
			return n, steps, true
		case *ast.ChainNode:
			node = n.Node
		case *ast.MemberNode:
			name, isName := n.Property.(*ast.StringNode)
			if !isName {
				return nil, nil, false
			}
			steps = append(steps, step{name.Value, n.Optional, name})
			node = n.Node
		default:
			return nil, nil, false
		}
	}
}

// resolve finds the slot that a chain names and the shape of its value. It is
// not ok where the chain goes on behind what can be resolved now: the rest is
// left to the evaluator.
func (s *scope) resolve(root *ast.IdentifierNode, steps []step) (found slot, sh *shape, ok bool, err error) {
	l, isLeaf := s.leaves[root.Value]
	if !isLeaf {
		sp, isSpace := s.spaces[root.Value]
		switch {
		case !isSpace:
			return slot{}, nil, false, mistakef(root, "unknown name %q%s", root.Value, s.nearest(root.Value))
		case len(steps) == 0:
			return slot{}, nil, false, mistakef(root, "%q is no value by itself; write %s", root.Value, sp.how())
		}
		if l, err = sp.leaf(root.Value, steps[0]); err != nil {
			return slot{}, nil, false, err
		}
		steps = steps[1:]
	}
	if grant := s.missing(l, steps); grant != "" {
		return slot{}, nil, false, mistakef(root, "%s may not be seen by the plugin, whose condition this is: grant see: [%s], or write the condition in the configuration", l.name, grant)
	}
	found, sh = slot{name: l.name, leaf: l}, l.shape
	for _, st := range steps {
		if sh.kind != kindAny && sh.kind != kindObject || sh.kind == kindAny && st.optional {
			return slot{}, nil, false, nil
		}
		if sh, err = sh.field(found.name, st.name, st.at); err != nil {
			return slot{}, nil, false, err
		}
		found.name += "." + st.name
		found.path = append(found.path, st.name)
	}
	return found, sh, true, nil
}

// leaf finds a name below a space.
func (s space) leaf(root string, st step) (leaf, error) {
	if s.open != nil {
		return s.open(st.name), nil
	}
	l, ok := s.fields[st.name]
	if !ok {
		known := slices.Sorted(maps.Keys(s.fields))
		hint := phases.DidYouMean(st.name, known)
		if hint == "" && len(known) > 0 {
			hint = "; it has " + strings.Join(known, ", ")
		}
		return leaf{}, mistakef(st.at, "%q has no field %q%s", root, st.name, hint)
	}
	return l, nil
}

// field is the shape of a named member. Of an object of which nothing is known
// nothing is known.
func (s *shape) field(of, name string, at ast.Node) (*shape, error) {
	if s.fields == nil {
		return &shape{}, nil
	}
	f, ok := s.fields[name]
	if !ok {
		return nil, mistakef(at, "%q has no field %q%s", of, name, phases.DidYouMean(name, slices.Sorted(maps.Keys(s.fields))))
	}
	return f, nil
}

// load replaces a resolved chain by a call that loads its slot.
func (w *walker) load(node *ast.Node, s slot, sh *shape) bound {
	key := s.leaf.name + "\x00" + strings.Join(s.path, "\x00")
	i, known := w.index[key]
	if !known {
		i = len(w.slots)
		w.index[key] = i
		w.slots = append(w.slots, s)
	}
	*node = call(loadName, *node, sh.typeOf(), &ast.IdentifierNode{Value: "$env"}, &ast.IntegerNode{Value: i})
	w.charge(nanosLoad)
	switch sh.kind {
	case kindBool, kindInt, kindFloat:
		return scalar(sh.kind)
	case kindText:
		return bound{shape: sh, bytes: MaxBytes}
	default:
		return bound{shape: sh, bytes: MaxBytes, items: MaxItems}
	}
}

// member visits ".name", ["name"] and [index]. A chain that begins with a name
// of the scope becomes one load.
func (w *walker) member(node *ast.Node, n *ast.MemberNode) (bound, error) {
	if root, steps, ok := chain(n); ok {
		s, sh, ok, err := w.scope.resolve(root, steps)
		if err != nil {
			return bound{}, err
		}
		if ok {
			return w.load(node, s, sh), nil
		}
	}
	base, err := w.visit(&n.Node)
	if err != nil {
		return bound{}, err
	}
	if _, err := w.visit(&n.Property); err != nil {
		return bound{}, err
	}
	w.charge(nanosNode)
	inner := &shape{}
	if name, isName := n.Property.(*ast.StringNode); !isName && base.shape.kind == kindList && base.shape.elem != nil {
		inner = base.shape.elem
	} else if isName {
		if inner, err = base.shape.field("#", name.Value, name); err != nil {
			return bound{}, err
		}
	}
	return bound{shape: inner, bytes: base.bytes, items: base.bytes / entryBytes}, nil
}

// identifier visits a name that stands alone.
func (w *walker) identifier(node *ast.Node, n *ast.IdentifierNode) (bound, error) {
	s, sh, _, err := w.scope.resolve(n, nil)
	if err != nil {
		return bound{}, err
	}
	return w.load(node, s, sh), nil
}

// load is the function behind every name: frame and number of the slot.
func load(args ...any) (any, error) {
	f, isFrame := args[0].(*frame)
	i, isInt := args[1].(int)
	if !isFrame || !isInt {
		return nil, errNoFrame
	}
	return f.load(i)
}

// follow goes down a path of embedded JSON. A missing member is nil; a member
// of what is no object is an error.
func follow(v any, path []string) (any, error) {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, &noMemberError{name: name, of: v}
		}
		v = object[name]
	}
	return v, nil
}

// noMemberError is a step into a value that has no members.
type noMemberError struct {
	name string
	of   any
}

func (e *noMemberError) Error() string {
	return "has no member " + strconv.Quote(e.name) + " on its way: there is " + typeName(e.of)
}
