package bridge

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const cutMark = "\n\n[cut: this host takes no more text]"

// plain is a reminder without its element: agents put hooks' text into one of their own, and Claude Code escapes ours.
func plain(reminder string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(reminder, "<"+sdk.ReminderTag+" "), "\n</"+sdk.ReminderTag+">")
	head, text, _ := strings.Cut(inner, ">\n")
	return strings.TrimSpace("Reminder (" + strings.TrimSuffix(head, "/>") + "):\n" + text)
}

// fit joins a text and reminders so that they fit into a room. Reminders have priority: it cuts the text. The change is nil if
// nothing was cut.
func fit(r agent.Room, text string, reminders []string) (string, *manifest.RequestChange) {
	join := func(text string) string {
		parts := []string{strings.TrimSpace(text)}
		for _, r := range reminders {
			parts = append(parts, plain(r))
		}
		return strings.TrimSpace(strings.Join(parts, "\n\n"))
	}
	whole := join(text)
	if r.Fits(whole) {
		return whole, nil
	}
	sent := join(head(r, text, r.Most-r.Size(join(""))-len(cutMark)-2) + cutMark)
	if !r.Fits(sent) { // the reminders alone have no room
		sent = head(r, whole, r.Most-len(cutMark)) + cutMark
	}
	if r.Most == 0 {
		sent = ""
	}
	chars := func(s string) string { return strconv.Itoa(utf8.RuneCountInString(s)) }
	return sent, &manifest.RequestChange{Kind: manifest.RequestCut, Manifest: chars(whole), Sent: chars(sent)}
}

// head returns the beginning of a text with at most the given size.
func head(r agent.Room, text string, most int) string {
	chars := utf8.RuneCountInString(text)
	for chars > 0 {
		head := sdk.CutText(text, chars)
		size := r.Size(head)
		if size <= most {
			return head
		}
		chars = min(utf8.RuneCountInString(head)-1, int(int64(chars)*int64(max(most, 0))/int64(size)))
	}
	return ""
}

// withReminders adds the reminders that wait for an answer to a text, as far as they fit.
func withReminders(t *loop.Turn, r agent.Room, text string, with phases.Phase) (string, error) {
	_, err := t.HandReminders(with, func(reminder string) bool {
		more := strings.TrimSpace(text + "\n\n" + plain(reminder))
		if !r.Fits(more) {
			return false
		}
		text = more
		return true
	})
	return text, err
}
