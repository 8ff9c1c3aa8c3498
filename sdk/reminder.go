package sdk

import (
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// ReminderTag is the element around reminders.
const ReminderTag = "system-reminder"

// Reminder returns a reminder as a host puts it before the model: an element with the type, the attributes by name,
// and the text on lines of its own. Nothing in the text or in a value can close the element or open another one:
// the text is escaped by [Escaper], values are printed by [PlainName]. An attribute called "type" is omitted. A reminder
// without text is the element alone.
func Reminder(r *phases.MergedReminder) string {
	var out strings.Builder
	out.WriteString("<" + ReminderTag + ` type="` + PlainName(r.Type) + `"`)
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		if name != "type" {
			out.WriteString(" " + PlainName(name) + `="` + PlainName(r.Attributes[name]) + `"`)
		}
	}
	text, _ := Escaper{Tags: []string{ReminderTag}}.Escape(strings.TrimRight(CleanText(r.Text), "\n"))
	if text == "" {
		return out.String() + "/>"
	}
	return out.String() + ">\n" + text + "\n</" + ReminderTag + ">"
}
