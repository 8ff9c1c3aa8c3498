package chain

import (
	"math"
	"slices"
)

// allocation shares a budget among sources. The steps are those of the
// specification, in its order; it works in bytes and characters at once, and
// what binds first binds.
type allocation struct {
	header  string
	sources []Source
	items   []*item // the sources with text, in chain order

	left    extent // what nobody has yet
	empty   bool   // there is no text at all
	summary bool   // one line stands for all omitted sources
}

// item is a source with text and what it gets.
type item struct {
	src     *Source
	path    string // as it is printed
	body    string // escaped, without the LF that ends it
	escaped int    // places that escaping changed

	// delimiter and marker are reserved at their widest, with the kept bytes
	// written as the total. The marker's LF before it, which ends a body that
	// was cut, belongs to it.
	delimiter, marker extent

	limit  extent // of the body, with its LF if it is whole
	over   bool   // the limit of one file cuts the body
	floor  int    // bytes
	within int    // bytes of the body that the limit leaves

	surplus  bool // beyond the number of files
	admitted bool
	line     bool   // an omission line stands for it
	room     extent // allotment of body
	reserved extent // the marker, while one is reserved
	whole    bool
	piece    string // what is printed of the body
}

// newItem measures a source.
func newItem(src *Source, limits Limits) *item {
	it := &item{src: src, path: PrintPath(src.Display), floor: limits.Floor}
	if src.Scope.userWide() {
		it.floor = limits.GlobalFloor
	}
	it.body, it.escaped = escape(src.Text)
	it.delimiter = extentOf(delimiterLine(it.path, src.Scope, src.Bytes, src.Bytes))
	it.marker = extentOf(truncatedLine(it.path, src.Bytes, src.Bytes)).plus(extent{1, 1})
	// The LF that ends a body is ours, and no reason to cut a file that is
	// exactly as long as it may be.
	it.over = src.origin.long || len(it.body) > limits.File
	it.within = len(runePrefix(it.body, limits.File))
	it.limit = extentOf(it.body[:it.within])
	if !it.over {
		it.limit = it.limit.plus(extent{1, 1})
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
		case it.surplus:
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
func (a *allocation) share(budget extent) {
	ranked := a.ranked()
	if budget.bytes <= 0 || budget.chars <= 0 || len(ranked) == 0 {
		a.empty = true
		return
	}
	a.left = budget.minus(extentOf(a.header))
	if a.takeAll(ranked) {
		a.announce()
		return
	}
	first := ranked[0]
	if !first.least().fits(a.left) {
		a.empty = true
		return
	}
	a.takeFloors(ranked)
	a.announce()
	a.grow()
}

// least is the least room that a source can be cut to.
func (it *item) least() extent {
	return it.delimiter.plus(it.marker).plus(extent{1, 1})
}

// takeAll gives every source all that its own limit allows, if there is room
// for that.
func (a *allocation) takeAll(ranked []*item) bool {
	var sum extent
	for _, it := range ranked {
		sum = sum.plus(it.delimiter).plus(it.limit)
		if it.over {
			sum = sum.plus(it.marker)
		}
	}
	if !sum.fits(a.left) {
		return false
	}
	a.left = a.left.minus(sum)
	for _, it := range ranked {
		it.admitted, it.whole, it.piece = true, !it.over, it.body
		if it.over {
			it.piece = cut(it.body, extent{it.within, math.MaxInt})
		}
	}
	return true
}

// takeFloors admits sources, each with its floor, while there is room. The
// first that does not fit gets what is left.
func (a *allocation) takeFloors(ranked []*item) {
	for _, it := range ranked {
		room, isCut := it.floorRoom()
		need := it.delimiter.plus(room)
		if isCut {
			need = need.plus(it.marker)
		}
		if need.fits(a.left) {
			it.admit(room, isCut)
			a.left = a.left.minus(need)
			continue
		}
		if it.least().fits(a.left) {
			it.admit(a.left.minus(it.delimiter).minus(it.marker), true)
			a.left = extent{}
		}
		return
	}
}

// floorRoom is the room of the floor, and whether the body is cut by it.
func (it *item) floorRoom() (extent, bool) {
	if !it.over && it.limit.bytes <= it.floor {
		return it.limit, false
	}
	return extentOf(runePrefix(it.body[:it.within], it.floor)), true
}

// admit gives a source its first room.
func (it *item) admit(room extent, isCut bool) {
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

// announce reserves a line for each omitted source; or one for all of them; or
// none.
func (a *allocation) announce() {
	n := a.omitted()
	if n == 0 {
		return
	}
	var sum extent
	for _, it := range a.items {
		if !it.admitted {
			sum = sum.plus(extentOf(omittedLine(it.path, it.src.Bytes)))
		}
	}
	if sum.fits(a.left) {
		a.left = a.left.minus(sum)
		for _, it := range a.items {
			it.line = !it.admitted
		}
		return
	}
	if sum = extentOf(omittedFilesLine(n)); sum.fits(a.left) {
		a.left = a.left.minus(sum)
		a.summary = true
	}
}

// grow gives the rest away, nearest first, and cuts. What a cut leaves, and the
// marker of a source that became whole, goes on to the next.
func (a *allocation) grow() {
	for _, it := range slices.Backward(a.items) {
		if !it.admitted {
			continue
		}
		if missing := it.limit.minus(it.room); !it.over && missing.fits(a.left.plus(it.reserved)) {
			it.whole, it.piece = true, it.body
			a.left = a.left.plus(it.reserved).minus(missing)
			continue
		}
		room := it.room.plus(a.left)
		it.piece = cut(it.body, extent{min(room.bytes, it.within), room.chars})
		a.left = room.minus(extentOf(it.piece))
	}
}
