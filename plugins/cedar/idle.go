package cedar

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// idle are the parts of rules that can never match, and ids that two rules have.
func (s *ruleset) idle() []Problem {
	var found []Problem
	places := map[string]string{}
	for _, r := range s.rules {
		if first := places[r.id]; first != "" && r.id != "" {
			found = append(found, *r.problem("@id", "there is a rule %s", first))
		}
		places[r.id] = r.place()
		ast.Inspect(ast.NewNode(r.condition), func(n ast.IsNode) bool {
			for _, c := range compared(n) {
				if why := c.never(); why != "" {
					found = append(found, *r.problem(`"`+c.text, "%s never matches: %s", quoted(c.text), why))
				}
			}
			return true
		})
	}
	return found
}

// comparison is what a rule compares with a text: an attribute, or the id of a type's entities.
type comparison struct {
	with, text string
	like       bool
}

// compared are the comparisons that one node makes by itself.
func compared(n ast.IsNode) []comparison {
	switch n := n.(type) {
	case ast.NodeValue:
		if id, ok := n.Value.(types.EntityUID); ok {
			return []comparison{{with: string(id.Type), text: string(id.ID)}}
		}
	case ast.NodeTypeLike:
		if a, ok := n.Arg.(ast.NodeTypeAccess); ok {
			return []comparison{{string(a.Value), strings.Trim(string(n.Value.MarshalCedar()), `"`), true}}
		}
	case ast.NodeTypeEquals:
		return append(pairs(n.Left, n.Right), pairs(n.Right, n.Left)...)
	case ast.NodeTypeContains:
		return pairs(n.Right, n.Left)
	default: // the others compare nothing by themselves
	}
	return nil
}

// pairs are the comparisons of an attribute with a text, or with each of a set.
func pairs(attribute, value ast.IsNode) (list []comparison) {
	a, ok := attribute.(ast.NodeTypeAccess)
	if !ok {
		return nil
	}
	ast.Inspect(ast.NewNode(value), func(n ast.IsNode) bool {
		v, _ := n.(ast.NodeValue)
		if text, ok := v.Value.(types.String); ok {
			list = append(list, comparison{with: string(a.Value), text: string(text)})
		}
		return true
	})
	return list
}

// never says why a comparison is never true; empty if it may be.
func (c comparison) never() string {
	absolute := strings.HasPrefix(c.text, "/") || filepath.VolumeName(c.text) != ""
	switch {
	case (c.with == typeFile || c.with == "path" && !c.like) && (!absolute || path.Clean(c.text) != c.text):
		return "paths are absolute, and have no ~ and no slash at the end"
	case c.with == "path" && !absolute && !strings.HasPrefix(c.text, "*"):
		return "paths are absolute; begin with / or *, as in " + quoted("*/"+strings.TrimPrefix(c.text, "~/"))
	case c.with == "program" && !c.like && strings.Contains(c.text, "/"):
		return "programs have no directory"
	case c.with == "extension" && c.text != "" && !strings.HasPrefix(c.text, ".") && !strings.HasPrefix(c.text, "*"):
		return "extensions have their dot"
	case c.with == typeHost && strings.HasPrefix(c.text, "*."):
		return "a host stands for all below it: resource in Host::" + quoted(c.text[2:])
	}
	return ""
}
