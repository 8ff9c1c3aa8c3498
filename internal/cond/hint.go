package cond

import (
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

var unexpected = lazyregexp.New(`^unexpected token (\w+)(?:\("(.*)"\))?`)

// hinted adds what may have been meant to what the parser did not expect; source ends where that stands.
func hinted(message, source string) string {
	m := unexpected().FindStringSubmatch(message)
	switch {
	case m == nil:
		return message
	case operatorHint(m[2]) != "":
		return message + operatorHint(m[2])
	case m[1] == "Identifier":
		return message + ": an operator, such as ==, is missing before it"
	case m[1] == "EOF":
		return message + ": a bracket is not closed, or a value is missing at the end"
	case m[2] == "=":
		return message + ": a comparison is written =="
	case m[2] == ">" && strings.HasSuffix(source, "<"):
		return message + ": a comparison is written !="
	}
	return message
}

// operatorHint is for an operator that was written as something else.
func operatorHint(word string) string {
	for _, operator := range []string{"contains", "startsWith", "endsWith", "matches"} {
		if strings.EqualFold(operator, word) {
			return ": " + operator + " is an operator: a " + operator + " b"
		}
	}
	return ""
}

// methodHint is for a function that was written as a method.
func methodHint(callee ast.Node) string {
	member, ok := callee.(*ast.MemberNode)
	if !ok {
		return ""
	}
	name, ok := member.Property.(*ast.StringNode)
	if !ok {
		return ""
	}
	if _, known := arities()[name.Value]; known {
		return ": " + name.Value + " is a function: " + name.Value + "(a)"
	}
	return functionHint(name.Value)
}

// functionHint is for an unknown function.
func functionHint(name string) string {
	for _, other := range []string{"size len", "length len", "count len", "includes contains", "include contains", "toLower lower", "toUpper upper", "regex matches", "match matches"} {
		if from, to, _ := strings.Cut(other, " "); from == name {
			name = to
		}
	}
	if hint := operatorHint(name); hint != "" {
		return hint
	}
	known := slices.Sorted(maps.Keys(arities()))
	if slices.Contains(known, name) {
		return ": use " + name + "(a)"
	}
	return suggest.DidYouMean(name, known)
}
