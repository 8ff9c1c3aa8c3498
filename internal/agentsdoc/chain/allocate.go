package chain

import (
	"math"
	"slices"

	"github.com/grapnelhq/grapnel/sdk"
)

// allocation shares a budget among sources, in bytes and characters at once: whichever binds first. The steps follow
// the specification, in its order.
type allocation struct {
	header  string
	sources []Source
	items   []*item // the sources that may be mentioned, in chain order

	left    Budget // not given to any source yet
	empty   bool   // there is no text at all
	summary bool   // one line stands for all omitted sources
}

type item struct {
	src     *Source
	path    string // as printed
	named   bool   // only a line with its name may be printed
	body    string // escaped, without its final LF
	escaped int    // places that escaping changed

	// delimiter and marker are reserved at their widest, with the total for the kept bytes. The marker includes the LF
	// that ends a cut body.
	delimiter, marker Budget

	limit  Budget // of the body, with its LF if it is whole
	over   bool   // the limit of one file cuts the body
	floor  int    // bytes
	within int    // bytes of the body within the limit

	surplus  bool // beyond the number of files
	admitted bool
	line     bool   // an omission line stands for it
	allotted Budget // allotted to the body
	reserved Budget // for the marker
	whole    bool
	piece    string // what is printed of the body
}

func newItem(src *Source, limits Limits) *item {
	it := &item{src: src, path: sdk.PlainName(src.Display), floor: limits.Floor, named: src.named()}
	if it.named {
		return it
	}
	if src.Scope.userWide() {
		it.floor = limits.GlobalFloor
	}
	it.body, it.escaped = Escaper().Escape(src.Text)
	it.delimiter = extentOf(delimiterLine(it.path, src.Scope, src.Bytes, src.Bytes))
	it.marker = extentOf(truncatedLine(it.path, src.Bytes, src.Bytes)).plus(Budget{1, 1})
	// The LF that ends a body is ours: it must not cut a file that is exactly as long as the limit.
	it.over = src.origin.long || len(it.body) > limits.File
	it.within = len(sdk.LongestPrefix(it.body, limits.File, math.MaxInt))
	it.limit = extentOf(it.body[:it.within])
	if !it.over {
		it.limit = it.limit.plus(Budget{1, 1})
	}
	return it
}

// limitCount marks the sources beyond the allowed number: user-wide ones count first, then the nearest.
func (a *allocation) limitCount(files int) {
	for _, it := range a.ranked() {
		it.surplus = files <= 0
		files--
	}
}

// ranked returns the items with text in the order of their floors: managed, global, then nearest to farthest.
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

func (a *allocation) share(budget Budget) {
	ranked := a.ranked()
	if budget.Bytes <= 0 || budget.Chars <= 0 || len(a.items) == 0 {
		a.empty = true
		return
	}
	a.left = budget.minus(extentOf(a.header))
	switch {
	case len(ranked) == 0 || a.takeAll(ranked):
		// A text of names alone exists if one of them fits.
		a.empty = !a.announce() && len(ranked) == 0
	case !ranked[0].least().fits(a.left):
		a.empty = true
	default:
		a.takeFloors(ranked)
		a.announce()
		a.grow()
	}
}

// least is the smallest extent that a source can be cut to.
func (it *item) least() Budget {
	return it.delimiter.plus(it.marker).plus(Budget{1, 1})
}

// takeAll gives every source all that its own limit allows, if everything fits.
func (a *allocation) takeAll(ranked []*item) bool {
	var sum Budget
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
			it.piece = Escaper().Cut(it.body, it.within, math.MaxInt)
		}
	}
	return true
}

// takeFloors admits sources, each with its floor, while they fit. The first that does not gets what is left.
func (a *allocation) takeFloors(ranked []*item) {
	for _, it := range ranked {
		extent, isCut := it.floorExtent()
		need := it.delimiter.plus(extent)
		if isCut {
			need = need.plus(it.marker)
		}
		if need.fits(a.left) {
			it.admitted, it.allotted = true, extent
			if isCut {
				it.reserved = it.marker
			}
			a.left = a.left.minus(need)
			continue
		}
		if it.least().fits(a.left) {
			it.admitted, it.allotted, it.reserved = true, a.left.minus(it.delimiter).minus(it.marker), it.marker
			a.left = Budget{}
		}
		return
	}
}

// floorExtent is the extent of the floor, and whether it cuts the body.
func (it *item) floorExtent() (Budget, bool) {
	if !it.over && it.limit.Bytes <= it.floor {
		return it.limit, false
	}
	return extentOf(sdk.LongestPrefix(it.body[:it.within], it.floor, math.MaxInt)), true
}

func (a *allocation) omitted() int {
	n := 0
	for _, it := range a.items {
		if !it.admitted {
			n++
		}
	}
	return n
}

// announce reserves a line for each source without text, or one for all of them. It reports whether one fits.
func (a *allocation) announce() bool {
	n := a.omitted()
	if n == 0 {
		return false
	}
	var sum Budget
	for _, it := range a.items {
		if it.line = !it.admitted; it.line {
			sum = sum.plus(extentOf(it.omission()))
		}
	}
	if sum.fits(a.left) {
		a.left = a.left.minus(sum)
		return true
	}
	for _, it := range a.items {
		it.line = false
	}
	if sum = extentOf(omittedFilesLine(n)); sum.fits(a.left) {
		a.left = a.left.minus(sum)
		a.summary = true
	}
	return a.summary
}

func (it *item) omission() string {
	if it.named {
		return untrustedLine(it.path, it.src.Bytes)
	}
	return omittedLine(it.path, it.src.Bytes)
}

// grow gives the rest away, nearest first, and cuts. What a cut leaves unused, and the marker of a source that became
// whole, goes on to the next.
func (a *allocation) grow() {
	for _, it := range slices.Backward(a.items) {
		if !it.admitted {
			continue
		}
		if missing := it.limit.minus(it.allotted); !it.over && missing.fits(a.left.plus(it.reserved)) {
			it.whole, it.piece = true, it.body
			a.left = a.left.plus(it.reserved).minus(missing)
			continue
		}
		extent := it.allotted.plus(a.left)
		it.piece = Escaper().Cut(it.body, min(extent.Bytes, it.within), extent.Chars)
		a.left = extent.minus(extentOf(it.piece))
	}
}
