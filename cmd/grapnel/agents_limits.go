package main

import (
	"math"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// unbounded is more than any tree has, and can be added to.
const unbounded = math.MaxInt32

// limitCut is a limit for want of which files are not whole, and what helps.
type limitCut struct {
	name, remedy string
}

// cutBy finds the limits for want of which a rendering is not whole: those that
// cut it where there is no other. A text is read only as far as it is of use, so
// each takes another look.
func (f *agentsInForce) cutBy(r *chain.Rendering) []limitCut {
	if !r.Cut() {
		return nil
	}
	configured := f.Options.Budget
	free := configured
	free.Total, free.File, free.Files = unbounded, unbounded, unbounded
	var cut []limitCut
	try := func(name, remedy string, chars int, bound func(*chain.Options)) {
		o := f.Options
		o.Budget = free
		bound(&o)
		r := chain.RenderForHost(chain.Resolve(chain.OS{}, f.dir, o), chain.Budget{Bytes: o.Budget.Total, Chars: chars})
		if r.Cut() {
			cut = append(cut, limitCut{name, remedy})
		}
	}
	try("bytes", "shorten the files, or raise budget.total and budget.file in the plugin's configuration", math.MaxInt,
		func(o *chain.Options) { o.Budget.Total, o.Budget.File = configured.Total, configured.File })
	try("characters", "shorten the files, or raise budget.chars of the subscription agentsdoc.prompt, up to "+text.Thousands(merge.DefaultSectionChars), f.chars,
		func(*chain.Options) {})
	try("the number of files", "join some, or raise budget.files in the plugin's configuration", math.MaxInt,
		func(o *chain.Options) { o.Budget.Files = configured.Files })
	return cut
}
