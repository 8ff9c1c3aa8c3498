package lazy

import (
	"fmt"
	"math"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
)

// leastBody is how much of a longer file is worth being given. With less room
// its path is told alone.
const leastBody = 1 << 10

// block is the text of a file as it is told: all of it with the lines of package
// chain, and the body between them.
type block struct {
	text, body string
}

// room is what one event has for bodies, in bytes.
type room struct {
	options chain.Options
	left    int
	// diagnostics are of what was cut, or had to be escaped.
	diagnostics []chain.Diagnostic
}

// newRoom is the room of an event under the options.
func newRoom(o *chain.Options) *room {
	r := &room{options: *o}
	if o.Resolver.Delivery == option.DeliverBody {
		r.left = o.Resolver.MaxEvent
	}
	// One file is told as the default preset prints one of a chain, whatever the
	// preset: with lines that no text can forge.
	r.options.Layout, r.options.Lazy, r.options.ChildHint = option.LayoutDelimited, false, false
	return r
}

// block takes the room for a file, and makes its text. It is empty where there
// is no room.
func (r *room) block(src chain.Source) block {
	if r.options.Resolver.Delivery != option.DeliverBody {
		return block{}
	}
	limit := min(r.left, r.options.Resolver.MaxFile)
	if limit <= 0 || int64(limit) < min(src.Bytes, leastBody) {
		return r.none(&src)
	}
	// Other presets leave what no prompt can carry, and line ends that are none.
	src.Text, _ = textrule.Form{Normal: true}.Text(src.Text)
	src.Text = strings.TrimRight(src.Text, "\n")
	for most := limit; most > 0; {
		b, size, remarks := r.render(src, most)
		if b.text == "" {
			break
		}
		over := size - limit - 1 // the LF that ends a body is ours
		if over <= 0 {
			r.left -= size
			r.diagnostics = append(r.diagnostics, remarks...)
			return b
		}
		most -= over // the tag had to be escaped, for which chain left no room
	}
	return r.none(&src)
}

// none reports a file whose text is not told.
func (r *room) none(src *chain.Source) block {
	r.diagnostics = append(r.diagnostics, chain.Diagnostic{
		Code: chain.CodeOmittedBudget, Severity: chain.CodeOmittedBudget.Severity(), Path: src.Path,
		Detail: fmt.Sprintf("%d bytes; the event has no room for its text, so only its path is told", src.Bytes),
	})
	return block{}
}

// render prints a file, its body cut to a limit. The size is that of the body as
// the model gets it, with its LF.
func (r *room) render(src chain.Source, limit int) (block, int, []chain.Diagnostic) {
	c := chain.Chain{Options: r.options, Sources: []chain.Source{src}}
	c.Options.Budget = chain.Limits{File: limit, Total: math.MaxInt32, Files: 1, Floor: 1, GlobalFloor: 1}
	out := chain.Render(c, chain.Budget{Bytes: math.MaxInt32, Chars: math.MaxInt32})
	if len(out.Sources) != 1 || out.Sources[0].DeliveredBytes == 0 {
		return block{}, 0, nil
	}
	// What comes before the first line of ours is the header of a whole chain.
	_, text, _ := strings.Cut(out.Text, "\n"+textrule.SourceWord)
	_, body, _ := strings.Cut(text, "\n")
	body, _ = reminder.Escape(body[:out.Sources[0].DeliveredBytes-1])
	return block{text: textrule.SourceWord + text, body: body}, len(body) + 1, out.Diagnostics
}
