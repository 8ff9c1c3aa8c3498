package runtime

import (
	"fmt"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// codeNotesDropped is the one row that stands for the diagnostics of a turn that
// were too many or too long.
const codeNotesDropped = "diagnostics_dropped"

// The bounds of what a turn keeps of diagnostics: in its memory, in its manifest
// and in what the host is handed. A plugin that floods uses up its own share.
const (
	maxNotes        = 1024
	maxNotesBytes   = 256 << 10
	maxNotesOf      = 64
	maxNotesOfBytes = 16 << 10
	maxNoteBytes    = 8 << 10
	maxNoteChars    = 1000
)

// notes are the diagnostics of a turn, each once, in the order in which they came.
// The zero value is empty. It is not safe for concurrent use.
type notes struct {
	list []phases.Diagnostic
	seen map[phases.Diagnostic]bool
	all  noteCount
	// of counts by plugin; what is nobody's counts under "".
	of      map[string]*noteCount
	dropped noteCount
}

type noteCount struct{ rows, bytes int }

func (c *noteCount) add(bytes int) {
	c.rows++
	c.bytes += bytes
}

// add takes diagnostics as far as there is room. Marks of failures that did not
// stop their phase are taken before anything else has a say, one for each
// subscription: a plugin must not be able to hide its failure behind a flood.
func (n *notes) add(list []phases.Diagnostic) {
	var marked map[string]bool
	for i := range list {
		d := tidy(list[i])
		if n.seen[d] {
			continue
		}
		must := d.Code == phases.CodeFailOpen && !marked[d.Subscription]
		if must {
			if marked == nil {
				marked = map[string]bool{}
			}
			marked[d.Subscription] = true
		}
		n.put(d, must)
	}
}

func (n *notes) put(d phases.Diagnostic, must bool) {
	bytes := noteBytes(&d)
	own := n.of[d.Plugin]
	if own == nil {
		own = &noteCount{}
	}
	full := n.all.rows >= maxNotes || n.all.bytes+bytes > maxNotesBytes ||
		d.Plugin != "" && (own.rows >= maxNotesOf || own.bytes+bytes > maxNotesOfBytes)
	if bytes > maxNoteBytes || full && !must {
		n.dropped.add(bytes)
		return
	}
	if n.seen == nil {
		n.seen, n.of = map[phases.Diagnostic]bool{}, map[string]*noteCount{}
	}
	n.of[d.Plugin] = own
	own.add(bytes)
	n.all.add(bytes)
	n.seen[d] = true
	n.list = append(n.list, d)
}

// rows are the diagnostics that were kept, and one for the others. The list is
// the caller's.
func (n *notes) rows() []phases.Diagnostic {
	out := make([]phases.Diagnostic, len(n.list), len(n.list)+1)
	copy(out, n.list)
	if n.dropped.rows > 0 {
		out = append(out, phases.Diagnostic{
			Code: codeNotesDropped, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("%s diagnostics of %s bytes were dropped: there is room for %s of a plugin and %s of a turn",
				text.Thousands(n.dropped.rows), text.Thousands(n.dropped.bytes), text.Thousands(maxNotesOf), text.Thousands(maxNotes)),
		})
	}
	return out
}

// tidy makes a diagnostic fit for a record: plugins write what they like.
func tidy(d phases.Diagnostic) phases.Diagnostic {
	d.Code, d.Slot = text.Repair(d.Code), text.Repair(d.Slot)
	d.Message, d.Detail = tidyText(d.Message), tidyText(d.Detail)
	switch d.Severity {
	case phases.SeverityInfo, phases.SeverityWarning, phases.SeverityError:
	default:
		d.Severity = phases.SeverityInfo
	}
	return d
}

func tidyText(s string) string {
	s = text.Repair(s)
	if len(s) > maxNoteChars && utf8.RuneCountInString(s) > maxNoteChars {
		return text.Head(s, maxNoteChars-1) + "…"
	}
	return s
}

// noteBytes is the size of a diagnostic: it is shown with one of its texts.
func noteBytes(d *phases.Diagnostic) int {
	return len(d.Code) + max(len(d.Message), len(d.Detail)) + len(d.Cause) + len(d.Plugin) + len(d.Subscription) + len(d.OtherSubscription) + len(d.Slot)
}
