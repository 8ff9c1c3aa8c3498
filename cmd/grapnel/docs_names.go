package main

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/tree"
)

// maxFileName is how many bytes a folder's name may have on disk, the number
// behind it left out.
const maxFileName = 80

// layout gives each folder its path below an export: names made safe, and unique
// in their parent also where case does not count. It is the same for the same
// tree. The root is ".".
func layout(folders []tree.Folder) map[tree.FolderID]string {
	children := map[tree.FolderID][]tree.Folder{}
	for _, f := range folders {
		children[f.ParentID] = append(children[f.ParentID], f)
	}
	paths := map[tree.FolderID]string{"": "."}
	for queue := []tree.FolderID{""}; len(queue) > 0; queue = queue[1:] {
		list := children[queue[0]]
		slices.SortFunc(list, func(a, b tree.Folder) int { return cmp.Compare(a.ID, b.ID) })
		taken := map[string]bool{}
		for _, f := range list {
			id := tree.FolderID(f.ID)
			if _, seen := paths[id]; seen {
				continue // a tree that goes round is damaged
			}
			paths[id] = path.Join(paths[queue[0]], uniqueName(safeName(f.Name), taken))
			queue = append(queue, id)
		}
	}
	return paths
}

// uniqueName is a name that is not taken, and takes it.
func uniqueName(name string, taken map[string]bool) string {
	unique := name
	for n := 2; taken[strings.ToLower(unique)]; n++ {
		unique = name + "~" + strconv.Itoa(n)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}

// safeName is a name that a folder may have on any system, that hides nothing and
// goes nowhere else, and that no file of an export has.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\<>:"|?*`, r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxFileName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	name = strings.TrimRight(strings.TrimLeft(name, " "), " .")
	if rest, hidden := strings.CutPrefix(name, "."); hidden {
		name = "_" + rest
	}
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch {
	case name == "":
		return "_"
	case strings.EqualFold(name, docFile), reservedName(stem):
		return name + "_"
	}
	return name
}

// reservedName reports whether Windows takes a name for a device.
func reservedName(stem string) bool {
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	prefix, number := stem[:min(3, len(stem))], stem[min(3, len(stem)):]
	return (prefix == "COM" || prefix == "LPT") && len(number) == 1 && number >= "0" && number <= "9"
}
