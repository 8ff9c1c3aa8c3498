package lazy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// The codes of changes in diagnostics.
const (
	CodeAdded   chain.Code = "added"
	CodeChanged chain.Code = "changed"
	CodeRemoved chain.Code = "removed"
)

// Changes is the answer of [State.Changed].
type Changes struct {
	Files       []File             `json:"files"`       // in chain order, followed by the removed ones
	Pending     int                `json:"pending"`     // changes that wait for the next call
	Reminder    string             `json:"reminder"`    // Message with its tag; empty without files
	Diagnostics []chain.Diagnostic `json:"diagnostics"` // one row for each file

	Message reminder.Message `json:"-"` // notifies the model
}

// Changed reports how the files that the session began with have changed, given the current chain of its working
// directory. What it reports counts as reported and delivered; what [State.Touch] delivered is not reported again. A
// content that the model was given before another one is named without its text. It reports at most as many files as
// an event has, the nearest first; the others wait.
//
// The working directory, root and markers are not compared: that is for [State.Resume]. Options that never resolve
// report nothing.
func (s *State) Changed(now chain.Chain) Changes {
	out := Changes{Files: []File{}, Diagnostics: []chain.Diagnostic{}}
	o := nestedOptions(now.Options, s.Root)
	if o.Resolver.ChangedWhen == chain.ChangedNeverResolved {
		return out
	}
	edits := s.edits(&now, o.Resolver.ChangedWhen)
	out.Pending = choose(edits, o.Resolver.MaxFiles)
	budget := newTextBudget(&o)
	blocks := budget.blocks(edits)
	var reported []reminder.File
	for i, e := range edits {
		if e.reported {
			f := e.file(blocks[i])
			out.Files, out.Diagnostics = append(out.Files, f), append(out.Diagnostics, e.diagnostic())
			reported = append(reported, f.reminder(blocks[i]))
		}
	}
	out.Diagnostics = append(out.Diagnostics, budget.diagnostics...)
	s.adopt(edits, true)
	out.Message = reminder.StyleOf(o.Layout).FilesChanged(reported)
	out.Reminder = out.Message.Tagged()
	return out
}

// choose marks what is reported: the nearest files, with removed ones first. It returns how many are not.
func choose(edits []edit, most int) (rest int) {
	for i := range slices.Backward(edits) {
		switch e := &edits[i]; {
		case e.reason == "":
		case most > 0:
			most--
			e.reported = true
		default:
			rest++
		}
	}
	return rest
}

// blocks are the texts of what is reported, by index. The nearest goes first; what the model has seen needs none.
func (r *textBudget) blocks(edits []edit) []block {
	blocks := make([]block, len(edits))
	for i, e := range slices.Backward(edits) {
		if e.reported && !e.seen && e.source != nil && e.source.Text != "" {
			blocks[i] = r.block(*e.source)
		}
	}
	return blocks
}

func (e *edit) file(b block) File {
	f := File{Reason: e.reason, Delivery: chain.DeliverReminder, Body: b.body}
	if b.text != "" {
		f.Delivery = chain.DeliverBody
	}
	if e.now == nil {
		f.Path = e.before.Path
		return f
	}
	f.Path, f.Display, f.MTimeMs, f.SizeBytes = e.now.Path, e.source.Display, e.now.MTimeMs, e.now.Size
	return f
}

func (e *edit) diagnostic() chain.Diagnostic {
	d := chain.Diagnostic{Code: CodeChanged, Severity: phases.SeverityInfo, Detail: "has changed since it was delivered"}
	if e.now == nil {
		d.Code, d.Path, d.Detail = CodeRemoved, e.before.Path, "is no longer among the files of the working directory"
		return d
	}
	if e.reason == reminder.New {
		d.Code, d.Detail = CodeAdded, "is new among the files of the working directory"
	}
	d.Path = e.now.Path
	return d
}

// leastBody is the least part of a longer file that is worth delivering; otherwise only its path is.
const leastBody = 1 << 10

// block is the text of a file as it is delivered, and the body between the lines of package chain.
type block struct {
	text, body string
}

// textBudget is what one event has for bodies, in bytes.
type textBudget struct {
	options     chain.Options
	left        int
	diagnostics []chain.Diagnostic // about what was cut or escaped
}

func newTextBudget(o *chain.Options) *textBudget {
	r := &textBudget{options: *o}
	if o.Resolver.Delivery == chain.DeliverBody {
		r.left = o.Resolver.MaxEvent
	}
	// Whatever the preset, one file is printed as in the default preset: with lines that no text can forge.
	r.options.Layout, r.options.Lazy, r.options.ChildHint = chain.LayoutDelimited, false, false
	return r
}

// block makes the text of a file and takes it from the budget. It is empty if the budget is exhausted.
func (r *textBudget) block(src chain.Source) block {
	if r.options.Resolver.Delivery != chain.DeliverBody {
		return block{}
	}
	limit := min(r.left, r.options.Resolver.MaxFile)
	most := limit
	if int64(limit) < min(src.Bytes, leastBody) {
		most = 0
	}
	// Other presets keep characters that no prompt can carry.
	src.Text = strings.TrimRight(sdk.CleanText(src.Text), "\n")
	for most > 0 {
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
		most -= over // the tag had to be escaped, which chain does not count
	}
	r.diagnostics = append(r.diagnostics, chain.Diagnostic{
		Code: chain.CodeOmittedBudget, Severity: chain.CodeOmittedBudget.Severity(), Path: src.Path,
		Detail: fmt.Sprintf("%d bytes; the text budget of the event is used up, so only its path is delivered", src.Bytes),
	})
	return block{}
}

// render prints a file, its body cut to a limit. The size is that of the body as the model gets it, with its LF.
func (r *textBudget) render(src chain.Source, limit int) (block, int, []chain.Diagnostic) {
	c := chain.Chain{Options: r.options, Sources: []chain.Source{src}}
	c.Options.Budget = chain.Limits{File: limit, Total: math.MaxInt32, Files: 1, Floor: 1, GlobalFloor: 1}
	out := chain.Render(c, chain.Budget{Bytes: math.MaxInt32, Chars: math.MaxInt32})
	if len(out.Sources) != 1 || out.Sources[0].DeliveredBytes == 0 {
		return block{}, 0, nil
	}
	// Before the first of our lines is the header of a whole chain.
	_, text, _ := strings.Cut(out.Text, "\n"+chain.SourceWord)
	_, body, _ := strings.Cut(text, "\n")
	body, _ = reminder.Escape(body[:out.Sources[0].DeliveredBytes-1])
	return block{text: chain.SourceWord + text, body: body}, len(body) + 1, out.Diagnostics
}
