package turnstate

import (
	"cmp"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// codeNotesDropped: a turn had too many diagnostics.
const codeNotesDropped = "diagnostics_dropped"

// Bounds of the diagnostics of a turn, in memory, in its manifest, and in what the host
// gets. Each plugin has its own share.
const (
	maxNotes           = 1024
	maxNotesBytes      = 256 << 10
	MaxPluginNotes     = 64
	maxPluginNoteBytes = 16 << 10
	MaxNoteBytes       = 8 << 10
	MaxNoteChars       = 1000
)

// notes are the diagnostics of a turn, each once, in order. The zero value is empty. It is
// not safe for concurrent use.
type notes struct {
	list    []phases.Diagnostic
	seen    map[phases.Diagnostic]bool
	all     noteCount
	of      map[string]*noteCount // of counts by plugin; diagnostics without one count under ""
	dropped noteCount
}

type noteCount struct{ rows, bytes int }

func (c *noteCount) add(bytes int) {
	c.rows++
	c.bytes += bytes
}

// add adds diagnostics within the bounds. The first fail_open mark of each subscription
// always fits: a plugin must not hide its failure behind a flood.
func (n *notes) add(list []phases.Diagnostic) {
	marked := map[string]bool{}
	for i := range list {
		d := tidy(list[i])
		if n.seen[d] {
			continue
		}
		first := d.Code == phases.CodeFailOpen && !marked[d.Subscription]
		if first {
			marked[d.Subscription] = true
		}
		n.put(d, first)
	}
}

func (n *notes) put(d phases.Diagnostic, must bool) {
	bytes := NoteBytes(&d)
	own := n.of[d.Plugin]
	if own == nil {
		own = &noteCount{}
	}
	full := n.all.rows >= maxNotes || n.all.bytes+bytes > maxNotesBytes ||
		d.Plugin != "" && (own.rows >= MaxPluginNotes || own.bytes+bytes > maxPluginNoteBytes)
	if bytes > MaxNoteBytes || full && !must {
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

// rows returns a copy of the kept diagnostics from the given one on, and one about those that were dropped.
func (n *notes) rows(from int) []phases.Diagnostic {
	out := append([]phases.Diagnostic{}, n.list[from:]...)
	if n.dropped.rows > 0 {
		out = append(out, phases.Diagnostic{
			Code: codeNotesDropped, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("%s diagnostics of %s bytes were dropped: at most %s of a plugin and %s of a turn are kept",
				text.Thousands(n.dropped.rows), text.Thousands(n.dropped.bytes), text.Thousands(MaxPluginNotes), text.Thousands(maxNotes)),
		})
	}
	return out
}

// Bounded returns diagnostics within the bounds of a turn, and one about the others.
func Bounded(list []phases.Diagnostic) []phases.Diagnostic {
	var n notes
	n.add(list)
	return n.rows(0)
}

func tidy(d phases.Diagnostic) phases.Diagnostic {
	d.Code, d.Slot = cmp.Or(text.Repair(d.Code), string(d.Cause), string(phases.CauseInternal)), text.Repair(d.Slot)
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
	if len(s) > MaxNoteChars && utf8.RuneCountInString(s) > MaxNoteChars {
		return text.Head(s, MaxNoteChars-1) + "…"
	}
	return s
}

// NoteBytes is the size of a diagnostic: it is shown with one of its texts.
func NoteBytes(d *phases.Diagnostic) int {
	return len(d.Code) + max(len(d.Message), len(d.Detail)) + len(d.Cause) + len(d.Plugin) + len(d.Subscription) + len(d.OtherSubscription) + len(d.Slot)
}

// LogLevel is the level at which a diagnostic is logged.
func LogLevel(s phases.Severity) slog.Level {
	switch s {
	case phases.SeverityError:
		return slog.LevelError
	case phases.SeverityWarning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
