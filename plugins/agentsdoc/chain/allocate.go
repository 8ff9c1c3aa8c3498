package chain

import (
	"math"
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// allocation shares a budget among sources. The steps are those of the
// specification, in its order; it works in bytes and characters at once, and
// what binds first binds.
type allocation struct {
	header  string
	sources []Source
	items   []*item // the sources of which something may be said, in chain order

	left    textrule.Extent // what nobody has yet
	empty   bool            // there is no text at all
	summary bool            // one line stands for all omitted sources
}

// item is a source and what it gets.
type item struct {
	src     *Source
	path    string // as it is printed
	named   bool   // only a line with its name may be printed
	body    string // escaped, without the LF that ends it
	escaped int    // places that escaping changed

	// delimiter and marker are reserved at their widest, with the kept bytes
	// written as the total. The marker's LF before it, which ends a body that
	// was cut, belongs to it.
	delimiter, marker textrule.Extent

	limit  textrule.Extent // of the body, with its LF if it is whole
	over   bool            // the limit of one file cuts the body
	floor  int             // bytes
	within int             // bytes of the body that the limit leaves

	surplus  bool // beyond the number of files
	admitted bool
	line     bool            // an omission line stands for it
	room     textrule.Extent // allotment of body
	reserved textrule.Extent // the marker, while one is reserved
	whole    bool
	piece    string // what is printed of the body
}

// newItem measures a source.
func newItem(src *Source, limits Limits) *item {
	it := &item{src: src, path: textrule.PrintPath(src.Display), floor: limits.Floor, named: src.named()}
	if it.named {
		return it
	}
	if src.Scope.userWide() {
		it.floor = limits.GlobalFloor
	}
	it.body, it.escaped = textrule.Escape(src.Text)
	it.delimiter = textrule.ExtentOf(delimiterLine(it.path, src.Scope, src.Bytes, src.Bytes))
	it.marker = textrule.ExtentOf(truncatedLine(it.path, src.Bytes, src.Bytes)).Plus(one())
	// The LF that ends a body is ours, and no reason to cut a file that is
	// exactly as long as it may be.
	it.over = src.origin.long || len(it.body) > limits.File
	it.within = len(textrule.RunePrefix(it.body, limits.File))
	it.limit = textrule.ExtentOf(it.body[:it.within])
	if !it.over {
		it.limit = it.limit.Plus(one())
	}
	return it
}

// limitCount takes the sources beyond the allowed number out: user-wide ones
// stay first, then the nearest.
func (a *allocation) limitCount(files int) {
	for _, it := range a.ranked() {
		it.surplus = files <= 0
		files--
	}
}

// ranked returns the items that take part in the order of their floors:
// managed, global, then nearest to farthest.
func (a *allocation) ranked() []*item {
	var wide, near []*item
	for _, it := range a.items {
		switch {
		case it.surplus || it.named:
		case it.src.Scope.userWide():
			wide = append(wide, it)
		default:
			near = append(near, it)
		}
	}
	slices.Reverse(near)
	return append(wide, near...)
}

// share is the whole of the allocation.
func (a *allocation) share(budget textrule.Extent) {
	ranked := a.ranked()
	if budget.Bytes <= 0 || budget.Chars <= 0 || len(a.items) == 0 {
		a.empty = true
		return
	}
	a.left = budget.Minus(textrule.ExtentOf(a.header))
	if len(ranked) == 0 || a.takeAll(ranked) {
		// Where there are only names, there is a text if one can be said.
		a.empty = !a.announce() && len(ranked) == 0
		return
	}
	if !ranked[0].least().Fits(a.left) {
		a.empty = true
		return
	}
	a.takeFloors(ranked)
	a.announce()
	a.grow()
}

// least is the least room that a source can be cut to.
func (it *item) least() textrule.Extent {
	return it.delimiter.Plus(it.marker).Plus(one())
}

// takeAll gives every source all that its own limit allows, if there is room
// for that.
func (a *allocation) takeAll(ranked []*item) bool {
	var sum textrule.Extent
	for _, it := range ranked {
		sum = sum.Plus(it.delimiter).Plus(it.limit)
		if it.over {
			sum = sum.Plus(it.marker)
		}
	}
	if !sum.Fits(a.left) {
		return false
	}
	a.left = a.left.Minus(sum)
	for _, it := range ranked {
		it.admitted, it.whole, it.piece = true, !it.over, it.body
		if it.over {
			it.piece = textrule.Cut(it.body, textrule.Extent{Bytes: it.within, Chars: math.MaxInt})
		}
	}
	return true
}

// takeFloors admits sources, each with its floor, while there is room. The
// first that does not fit gets what is left.
func (a *allocation) takeFloors(ranked []*item) {
	for _, it := range ranked {
		room, isCut := it.floorRoom()
		need := it.delimiter.Plus(room)
		if isCut {
			need = need.Plus(it.marker)
		}
		if need.Fits(a.left) {
			it.admit(room, isCut)
			a.left = a.left.Minus(need)
			continue
		}
		if it.least().Fits(a.left) {
			it.admit(a.left.Minus(it.delimiter).Minus(it.marker), true)
			a.left = textrule.Extent{}
		}
		return
	}
}

// floorRoom is the room of the floor, and whether the body is cut by it.
func (it *item) floorRoom() (textrule.Extent, bool) {
	if !it.over && it.limit.Bytes <= it.floor {
		return it.limit, false
	}
	return textrule.ExtentOf(textrule.RunePrefix(it.body[:it.within], it.floor)), true
}

// admit gives a source its first room.
func (it *item) admit(room textrule.Extent, isCut bool) {
	it.admitted, it.room = true, room
	if isCut {
		it.reserved = it.marker
	}
}

// omitted counts the sources without room.
func (a *allocation) omitted() int {
	n := 0
	for _, it := range a.items {
		if !it.admitted {
			n++
		}
	}
	return n
}

// announce reserves a line for each source without room, or of which only the
// name may be said; or one for all of them; or none. It reports whether there
// is any.
func (a *allocation) announce() bool {
	n := a.omitted()
	if n == 0 {
		return false
	}
	var sum textrule.Extent
	for _, it := range a.items {
		if !it.admitted {
			sum = sum.Plus(textrule.ExtentOf(it.omission()))
		}
	}
	if sum.Fits(a.left) {
		a.left = a.left.Minus(sum)
		for _, it := range a.items {
			it.line = !it.admitted
		}
		return true
	}
	if sum = textrule.ExtentOf(omittedFilesLine(n)); sum.Fits(a.left) {
		a.left = a.left.Minus(sum)
		a.summary = true
	}
	return a.summary
}

// omission is the line that stands for a source without text.
func (it *item) omission() string {
	if it.named {
		return untrustedLine(it.path, it.src.Bytes)
	}
	return omittedLine(it.path, it.src.Bytes)
}

// grow gives the rest away, nearest first, and cuts. What a cut leaves, and the
// marker of a source that became whole, goes on to the next.
func (a *allocation) grow() {
	for _, it := range slices.Backward(a.items) {
		if !it.admitted {
			continue
		}
		if missing := it.limit.Minus(it.room); !it.over && missing.Fits(a.left.Plus(it.reserved)) {
			it.whole, it.piece = true, it.body
			a.left = a.left.Plus(it.reserved).Minus(missing)
			continue
		}
		room := it.room.Plus(a.left)
		it.piece = textrule.Cut(it.body, textrule.Extent{Bytes: min(room.Bytes, it.within), Chars: room.Chars})
		a.left = room.Minus(textrule.ExtentOf(it.piece))
	}
}

// one is the extent of a character of ASCII.
func one() textrule.Extent { return textrule.Extent{Bytes: 1, Chars: 1} }
