package chain

import (
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// excluded reports whether the options exclude a file of the tree, or a folder
// that it is in.
func (r *resolver) excluded(display string) bool {
	return Excluded(r.chain.Options.Exclude, display)
}

// Excluded reports whether patterns, as the options have them, exclude a file, or
// a folder that it is in. The file is given by its path below the root, with
// slashes. A pattern that is none excludes nothing.
func Excluded(patterns []string, display string) bool {
	if len(patterns) == 0 {
		return false
	}
	elems := strings.Split(display, "/")
	return slices.ContainsFunc(patterns, func(p string) bool { return option.IsGlob(p) && excludes(p, elems) })
}

// excludes reports whether a pattern matches a path or the beginning of one.
func excludes(pattern string, elems []string) bool {
	anchored := strings.Contains(strings.TrimRight(pattern, "/"), "/")
	parts := strings.Split(strings.Trim(pattern, "/"), "/")
	if anchored {
		return matchesBeginning(parts, elems)
	}
	return slices.ContainsFunc(elems, func(elem string) bool { return matchesElem(parts[0], elem) })
}

// matchesBeginning matches element by element; ** stands for any number.
func matchesBeginning(parts, elems []string) bool {
	for len(parts) > 0 {
		if parts[0] == "**" {
			if parts = parts[1:]; len(parts) > 0 && parts[0] == "**" {
				continue // one says as much as two
			}
			for i := range len(elems) + 1 {
				if matchesBeginning(parts, elems[i:]) {
					return true
				}
			}
			return false
		}
		if len(elems) == 0 || !matchesElem(parts[0], elems[0]) {
			return false
		}
		parts, elems = parts[1:], elems[1:]
	}
	return true
}

// matchesElem matches one element.
func matchesElem(pattern, elem string) bool {
	ok, err := path.Match(pattern, elem)
	return err == nil && ok
}
