package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// statusWidth is how wide status may be: wider than a rule, since it has more columns
// than other results, and not wider than most terminals.
const statusWidth = 100

// now is when the gateway answered, by its own clock.
func (r *statusResult) now() time.Time {
	return r.StartedAt.Add(time.Duration(r.UptimeSeconds * float64(time.Second)))
}

// printStatus prints it for people.
func (a *app) printStatus(r *statusResult) {
	a.printf("%s", rule("gateway"))
	t := newTable("")
	t.add("target", r.Target)
	t.add("version", r.Version)
	t.add("up", upText(r.UptimeSeconds)+", since "+clock(r.StartedAt))
	t.add("store", r.Store)
	t.add("config", configText(r))
	t.add("connections", fmt.Sprintf("%s, which watch %s workspaces", text.Thousands(r.Connections), text.Thousands(r.Watchers)))
	t.add("turns", fmt.Sprintf("%s kept of %s, %s ended because they were idle", text.Thousands(r.Turns.Open), text.Thousands(r.Turns.Limit), text.Thousands(r.Turns.EndedIdle)))
	if r.Seq == nil {
		t.add("changes", "the database has not been reached yet")
	} else {
		t.add("changes", fmt.Sprintf("told up to %d", *r.Seq))
	}
	s := &r.Stats
	t.add("manifests", fmt.Sprintf("%d kept, %d not kept, of which %d late", s.ManifestsKept, s.ManifestsNotKept, s.ManifestsKeptLate))
	if s.AuditsNotKept > 0 {
		t.add("audits", fmt.Sprintf("%d kept, %d not kept", s.AuditsKept, s.AuditsNotKept))
	}
	t.add("jobs", queueText(&r.Queue))
	if s.SinkHanging > 0 {
		t.add("hanging", fmt.Sprintf("%d calls of the store were given up and have not returned", s.SinkHanging))
	}
	if s.ModelHanging > 0 {
		t.add("hanging", fmt.Sprintf("%d calls of the model were given up and have not returned", s.ModelHanging))
	}
	a.printTable(t)
	a.printReload(r)
	a.printHealth(r)
	a.printTrouble(r)
}

// configText names the configuration in force, and when it was read again.
func configText(r *statusResult) string {
	text := clean(r.Config)
	if l := r.Reload; l != nil && l.OK {
		text += fmt.Sprintf(", reloaded %s by %s", ago(l.At, r.now()), reloadCause(l))
	}
	return text
}

// printReload says why the last reload failed.
func (a *app) printReload(r *statusResult) {
	if l := r.Reload; l != nil && !l.OK {
		a.printf("\nthe reload %s by %s failed, what was in force stays:\n", ago(l.At, r.now()), reloadCause(l))
		for line := range strings.Lines(reloadError(l)) {
			a.printf("  %s\n", text.Sanitize(strings.TrimRight(line, "\n"), maxCell*2))
		}
	}
}

// printHealth prints a row for each plugin.
func (a *app) printHealth(r *statusResult) {
	t := newTable("plugins", "plugin", "state", ">gen", "tier", ">restarts", ">up", ">p50 ms", ">p99 ms", ">memory", "last error")
	for i := range r.Plugins {
		p := &r.Plugins[i]
		up := ""
		if !p.StartedAt.IsZero() {
			up = upText(r.now().Sub(p.StartedAt).Seconds())
		}
		t.add(p.Plugin, p.State, p.Generation, p.Tier, p.Restarts, up, quantile(&p.Took, p.Took.P50MS), quantile(&p.Took, p.Took.P99MS), memoryText(p.MemoryBytes), lastError(p.LastError, r.now()))
	}
	t.fit(statusWidth)
	a.printTable(t)
}

// quantile is one of a distribution; nothing where there is none.
func quantile(l *runtime.Latency, ms float64) string {
	if l.Count == 0 {
		return ""
	}
	return millis(ms)
}

// memoryText is a size of a process.
func memoryText(n int64) string {
	const mib, gib = 1 << 20, 1 << 30
	switch {
	case n == 0:
		return ""
	case n < mib:
		return "< 1 MiB"
	case n < 10*gib:
		return text.Thousands(int(n/mib)) + " MiB"
	default:
		return text.Thousands(int(n/gib)) + " GiB"
	}
}

// lastError is a failure in a column.
func lastError(e *runtime.LastError, now time.Time) string {
	if e == nil {
		return ""
	}
	return e.Code + " " + ago(e.At, now)
}

// ago is a time in the past. The two clocks are those of two machines, maybe.
func ago(at, now time.Time) string { return upText(max(0, now.Sub(at).Seconds())) + " ago" }

// printTrouble says who is in trouble, why, and what may help.
func (a *app) printTrouble(r *statusResult) {
	if len(r.Trouble) == 0 {
		return
	}
	a.printf("\nin trouble (%d)\n", len(r.Trouble))
	for i := range r.Trouble {
		t := &r.Trouble[i]
		a.printf("%s", wrapped(troubleText(t, r.now()), 2, 4))
		a.printf("%s", wrapped("to do: "+t.Remedy, 4, 4))
	}
}

// troubleText is one trouble as a sentence.
func troubleText(t *gateway.Trouble, now time.Time) string {
	about := "the hook " + t.Subscription
	switch {
	case t.Subscription != "":
	case t.Phase == phases.PhaseToolCall:
		about = "a tool of " + t.Plugin
	case t.Phase == phases.PhaseHostCall:
		about = "the model for " + t.Plugin
	default:
		about = "the plugin " + t.Plugin
	}
	line := about + " " + troubleWords(t.Kind, ago(t.At, now))
	if t.Code != "" && t.Code != string(t.Kind) {
		line += " (" + t.Code + ")"
	}
	if reason := strings.TrimSuffix(t.Reason, " ("+t.Code+")"); reason != "" {
		line += ": " + reason
	}
	if t.InARow > 0 {
		line += fmt.Sprintf("; runs failed in a row: %d", t.InARow)
	}
	if t.FailOpen > 0 {
		line += fmt.Sprintf("; phases that went on without: %d", t.FailOpen)
	}
	return line
}

// troubleWords says what is the matter, and when it began or last happened.
func troubleWords(k gateway.TroubleKind, when string) string {
	switch k {
	case gateway.TroubleQuarantined:
		return "went into quarantine " + when
	case gateway.TroubleBackoff:
		return "failed " + when + " and is started again"
	case gateway.TroubleBreaker:
		return "is not asked, its breaker is open, last error " + when
	case gateway.TroubleFailing:
		return "fails, last " + when
	case gateway.TroubleDegraded:
		return "is degraded since " + strings.TrimSuffix(when, " ago")
	case gateway.TroubleHanging, gateway.TroubleBusy:
		return "is " + string(k)
	case gateway.TroubleSandbox:
		return "is less confined than it should be"
	}
	return string(k)
}

// printHooks prints the hooks of each phase, and how long phases took.
func (a *app) printHooks(r *statusResult) {
	var tables []*table
	for i := range r.Hooks {
		h := &r.Hooks[i]
		if title := string(h.Phase); len(tables) == 0 || tables[len(tables)-1].title != title {
			tables = append(tables, newTable(title, "hook", "state", ">runs", ">cached", ">failed", ">fail-open", ">p50 ms", ">p99 ms", "last error"))
		}
		name := h.Subscription
		if name == "" {
			name = h.Plugin
		}
		tables[len(tables)-1].add(name, hookState(h), h.Runs, h.Cached, h.Failed, h.FailOpen, quantile(&h.Took, h.Took.P50MS), quantile(&h.Took, h.Took.P99MS), lastError(h.LastError, r.now()))
	}
	for _, t := range tables {
		t.fit(statusWidth)
		a.printTable(t)
	}
	t := newTable("phases", "phase", ">dispatches", ">failed", ">cancelled", ">p50 ms", ">p99 ms", ">max ms")
	for i := range r.Phases {
		p := &r.Phases[i]
		t.add(p.Phase, p.Dispatches, p.Failed, p.Cancelled, p.Took.P50MS, p.Took.P99MS, p.Took.MaxMS)
	}
	a.printTable(t)
}

// hookState is a hook in one word.
func hookState(h *runtime.HookRow) string {
	switch {
	case h.Off != "":
		return "off"
	case h.Breaker == "open" || h.Breaker == "half_open":
		return h.Breaker
	case h.FailedInARow > 0:
		return "failing"
	case h.Runs+h.Cached == 0:
		return "idle"
	default:
		return "ok"
	}
}

// fit makes a table not wider than the given width where that is possible: the last
// column gives first, then the first one.
func (t *table) fit(width int) {
	if len(t.rows) == 0 {
		return
	}
	columns := len(t.rows[0])
	widths := make([]int, columns)
	total := 0
	for i := range widths {
		widths[i] = text.Chars(strings.TrimPrefix(t.header[i], ">"))
		for _, row := range t.rows {
			widths[i] = max(widths[i], text.Chars(row[i]))
		}
		total += 2 + widths[i]
	}
	const least = 12
	for _, i := range []int{columns - 1, 0} {
		room := max(least, widths[i]-max(0, total-width))
		if room >= widths[i] {
			continue
		}
		total -= widths[i] - room
		for _, row := range t.rows {
			if text.Chars(row[i]) > room {
				row[i] = text.Head(row[i], room-1) + "…"
			}
		}
	}
}

// wrapped is a text in lines of statusWidth, the first indented by first, the others by
// rest. What plugins say of themselves is cleaned.
func wrapped(s string, first, rest int) string {
	var out strings.Builder
	line, indent := "", first
	flush := func() {
		out.WriteString(strings.Repeat(" ", indent) + line + "\n")
		line, indent = "", rest
	}
	const longest = 1000
	for _, word := range slices.Collect(strings.FieldsSeq(text.Sanitize(s, longest))) {
		if line != "" && indent+text.Chars(line)+1+text.Chars(word) > statusWidth {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
	return out.String()
}

// upText is a time since, as exact as is of use.
func upText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 24*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
