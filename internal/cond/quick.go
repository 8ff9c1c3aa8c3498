package cond

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// quick is a condition of the usual kind as a tree: texts compared with constants, and flags, joined by and, or and
// not. It allocates nothing. Where it is not sure to agree with the program it says so, and the program runs.
type quick struct {
	op          quickOp
	left, right *quick
	text        func(Env) (s string, ok bool)
	flag        func(Env) bool
	wanted      []string // the text is one of them
}

type quickOp int

const (
	quickAnd quickOp = iota
	quickOr
	quickNot
	quickText
	quickFlag
)

func (q *quick) eval(e *Env) (holds, ok bool) {
	switch q.op {
	case quickNot:
		holds, ok = q.left.eval(e)
		return !holds, ok
	case quickAnd, quickOr:
		if holds, ok = q.left.eval(e); !ok || holds == (q.op == quickOr) {
			return holds, ok
		}
		return q.right.eval(e)
	case quickText:
		s, ok := q.text(*e)
		return slices.Contains(q.wanted, s), ok && len(s) <= MaxBytes/2 // the program checks longer ones
	default:
		return q.flag(*e), true
	}
}

// quicken returns the quick form of a node that the walker has visited; nil if there is none.
func quicken(node ast.Node, slots []slot) *quick {
	switch n := node.(type) {
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			return quickened(quickNot, quicken(n.Node, slots))
		}
	case *ast.BinaryNode:
		return quickenBinary(n, slots)
	case *ast.CallNode:
		if l := leafOf(n, slots); l != nil && l.flag != nil {
			return &quick{op: quickFlag, flag: l.flag}
		}
	}
	return nil
}

func quickenBinary(n *ast.BinaryNode, slots []slot) *quick {
	switch n.Operator {
	case "and", "&&":
		return quickened(quickAnd, quicken(n.Left, slots), quicken(n.Right, slots))
	case "or", "||":
		return quickened(quickOr, quicken(n.Left, slots), quicken(n.Right, slots))
	case "==", "!=", "in":
		l, wanted := leafOf(n.Left, slots), texts(n.Right, n.Operator == "in")
		if l == nil || l.text == nil || wanted == nil {
			return nil
		}
		q := &quick{op: quickText, text: l.text, wanted: wanted}
		if n.Operator == "!=" {
			return quickened(quickNot, q)
		}
		return q
	}
	return nil
}

func quickened(op quickOp, operands ...*quick) *quick {
	if slices.Contains(operands, nil) {
		return nil
	}
	q := &quick{op: op, left: operands[0]}
	if len(operands) > 1 {
		q.right = operands[1]
	}
	return q
}

// leafOf returns the leaf that a node loads; nil if it does anything else.
func leafOf(node ast.Node, slots []slot) *leaf {
	n, ok := node.(*ast.CallNode)
	if !ok {
		return nil
	}
	if callee, ok := n.Callee.(*ast.IdentifierNode); !ok || callee.Value != loadName {
		return nil
	}
	index, ok := n.Arguments[1].(*ast.IntegerNode)
	if !ok || len(slots[index.Value].path) > 0 {
		return nil
	}
	return &slots[index.Value].leaf
}

// texts returns a constant text, or those of a list; nil for anything else.
func texts(node ast.Node, list bool) []string {
	nodes := []ast.Node{node}
	if list {
		array, ok := node.(*ast.ArrayNode)
		if !ok {
			return nil
		}
		nodes = array.Nodes
	}
	var all []string
	for _, n := range nodes {
		text, ok := n.(*ast.StringNode)
		if !ok {
			return nil
		}
		all = append(all, text.Value)
	}
	return all
}
