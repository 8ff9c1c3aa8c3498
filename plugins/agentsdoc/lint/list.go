package lint

import (
	"errors"
	"slices"
)

// errReplaced is the error for a folder that became something else, a link for
// instance, after its parent was listed.
var errReplaced = errors.New("is no folder any more")

// entryKind is the kind of an entry of a folder, as far as it matters.
type entryKind int

const (
	otherEntry entryKind = iota
	folderEntry
	// unknownEntry is an entry of a file system that does not tell.
	unknownEntry
)

// lister lists folders, one after the other. Its buffer serves them all.
type lister struct{ buf []byte }

// list returns what is of interest in a folder. With an error, it is what was seen
// before.
func (l *lister) list(f folder, n *notable) (listing, error) {
	var list listing
	err := f.each(l, func(name []byte, kind entryKind) {
		if n.wants(name) {
			list.notable = append(list.notable, string(name))
		}
		if kind == unknownEntry {
			kind = f.kind(string(name))
		}
		if kind == folderEntry {
			list.folders = append(list.folders, string(name))
		}
	})
	slices.Sort(list.folders)
	return list, err
}
