package bridge

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

const cannotAsk = "a person must allow it, and this host's hooks cannot ask: "

const (
	noReason   = "a hook refused this and gave no reason"
	nothing    = "(removed by a hook)"
	notObject  = "a hook rewrote the arguments to what is not an object, and this host takes no other"
	blankRunes = "\ufeff" // what JavaScript trims besides white space
)

// isBlank reports whether a host takes a text for none.
func isBlank(text string) bool {
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(text), blankRunes)) == ""
}

// filled returns the outcome with a text wherever a host needs one: an answer with a blank reason or result is a failed
// hook for some hosts, and what was refused or erased would go on.
func (o *Outcome) filled() *Outcome {
	f := *o
	if f.Verdict == "" && f.Arguments != nil && !bytes.HasPrefix(bytes.TrimSpace(f.Arguments), []byte("{")) {
		f.Verdict, f.Reason, f.Arguments = phases.VerdictDeny, notObject, nil
	}
	if f.Verdict != "" && isBlank(f.Reason) {
		f.Reason = noReason
	}
	if f.Result != nil && isBlank(*f.Result) {
		f.Result = new(nothing)
	}
	if isBlank(f.Context) {
		f.Context = ""
	}
	return &f
}

// toRead tells the model the rewritten result, for hosts that cannot replace results.
func toRead(result string) string { return "the result of the tool is to be read as: " + result }

// removed returns an argument that a rewrite has removed, for hosts that merge a rewrite into the old arguments.
func removed(was, now json.RawMessage) string {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(now, &after) != nil {
		return ""
	}
	first := ""
	for name := range before {
		if _, there := after[name]; !there && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

func cannotRemove(name string) string {
	return "the argument " + strconv.Quote(name) + " was taken away by a rewrite, and this host's hooks cannot do that"
}

// changed returns the arguments that a rewrite has changed or added.
func changed(was, now json.RawMessage) map[string]json.RawMessage {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(now, &after) != nil {
		return nil
	}
	for name, value := range before {
		if bytes.Equal(value, after[name]) {
			delete(after, name)
		}
	}
	return after
}

// room is how much text a host accepts with the answer to an event; the zero value accepts none.
type room struct {
	most int
	size func(text string) int
}

const unlimited = 1 << 30 // for hosts that state no limit

func inBytes(text string) int { return len(text) }

// inUTF16 is the length that JavaScript sees.
func inUTF16(text string) int {
	n := 0
	for _, r := range text {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

func (r room) fits(text string) bool { return r.most > 0 && r.size(text) <= r.most }

const cutMark = "\n\n[cut: this host takes no more text]"

// plain is a reminder without its element: agents put hooks' text into one of their own, and Claude Code escapes ours.
func plain(reminder string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(reminder, "<"+prompttext.ReminderTag+" "), "\n</"+prompttext.ReminderTag+">")
	head, text, _ := strings.Cut(inner, ">\n")
	return strings.TrimSpace("Reminder (" + strings.TrimSuffix(head, "/>") + "):\n" + text)
}

// put joins a text and reminders so that they fit. Reminders have priority: it cuts the text. The change is nil if
// nothing was cut.
func (r room) put(text string, reminders []string) (string, *manifest.RequestChange) {
	if r.most == 0 {
		r.size = inBytes
	}
	join := func(text string) string {
		parts := []string{strings.TrimSpace(text)}
		for _, r := range reminders {
			parts = append(parts, plain(r))
		}
		return strings.TrimSpace(strings.Join(parts, "\n\n"))
	}
	whole := join(text)
	if r.fits(whole) {
		return whole, nil
	}
	sent := join(r.head(text, r.most-r.size(join(""))-len(cutMark)-2) + cutMark)
	if !r.fits(sent) { // the reminders alone have no room
		sent = r.head(whole, r.most-len(cutMark)) + cutMark
	}
	if r.most == 0 {
		sent = ""
	}
	chars := func(s string) string { return strconv.Itoa(utf8.RuneCountInString(s)) }
	return sent, &manifest.RequestChange{Kind: manifest.RequestCut, Manifest: chars(whole), Sent: chars(sent)}
}

// head returns the beginning of a text with at most the given size.
func (r room) head(text string, most int) string {
	chars := utf8.RuneCountInString(text)
	for chars > 0 {
		head := prompttext.Head(text, chars)
		size := r.size(head)
		if size <= most {
			return head
		}
		chars = min(utf8.RuneCountInString(head)-1, int(int64(chars)*int64(max(most, 0))/int64(size)))
	}
	return ""
}
