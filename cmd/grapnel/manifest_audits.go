package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// recorded says which record of the log something stands in.
type recorded struct {
	ManifestID  string    `json:"manifest_id"`
	At          time.Time `json:"at"           jsonschema:"when the record was made, in UTC"`
	WorkspaceID string    `json:"workspace_id"`
	ThreadID    string    `json:"thread_id"`
	TurnID      string    `json:"turn_id"`
	SessionID   string    `json:"session_id"`
}

func placeOf(m *manifest.Manifest) recorded {
	return recorded{m.ManifestID, m.CreatedAt, m.WorkspaceID, m.ThreadID, m.TurnID, m.SessionID}
}

type auditList struct {
	Audits []auditRow `json:"audits" jsonschema:"newest last"`
	Older  int        `json:"older"  jsonschema:"how many older ones there are"`
}

type auditRow struct {
	recorded
	manifest.Audit
}

type callList struct {
	Calls []callRow `json:"calls" jsonschema:"newest last"`
	Older int       `json:"older" jsonschema:"how many older ones there are"`
}

type callRow struct {
	recorded
	manifest.Call

	Arguments     json.RawMessage `json:"arguments,omitempty"      jsonschema:"the arguments as they went, or a prompt; absent where they were not kept"`
	ArgumentsCame json.RawMessage `json:"arguments_came,omitempty" jsonschema:"those that came, where a rewrite changed them"`
	FactsKept     json.RawMessage `json:"facts_kept,omitempty"     jsonschema:"the facts behind the words; absent where they were not kept"`
}

// eventFlags select what stands in records.
type eventFlags struct {
	filterFlags

	Turn  string `flag:"turn"  usage:"only events of the turn {ID}"`
	Limit int    `default:"50" flag:"limit"                         usage:"list the newest {N}; 0 lists all"`
}

type auditFlags struct {
	eventFlags

	Plugin string `flag:"plugin" usage:"only events of the plugin {NAME}"`
}

type callsFlags struct {
	eventFlags

	Tool    string   `flag:"tool"    usage:"only calls of the tool {NAME}"`
	Verdict []string `flag:"verdict" usage:"only calls with the verdict {WORD} (may be repeated)"      words:"allow|ask|deny"`
	Text    bool     `flag:"text"    usage:"print arguments and facts whole, with the secrets in them"`
}

// eventRows returns the newest rows that records have, and how many older ones there are.
func eventRows[T any](ctx context.Context, s *openedStore, f *eventFlags, of func(m *manifest.Manifest) []T) (rows []T, older int, err error) {
	rows = []T{}
	for r, err := range s.Records(ctx, f.filter()) {
		if err != nil {
			return nil, 0, err
		}
		if f.Turn != "" && r.Index.TurnID != f.Turn {
			continue
		}
		m, err := manifest.Parse(r.Data)
		if err != nil {
			return nil, 0, fmt.Errorf("the manifest %s: %w", r.Index.ManifestID, err)
		}
		if rows = append(rows, of(&m)...); f.Limit > 0 && len(rows) > f.Limit {
			older += len(rows) - f.Limit
			rows = slices.Delete(rows, 0, len(rows)-f.Limit)
		}
	}
	return rows, older, nil
}

func (a *app) manifestAudits(ctx context.Context, s *openedStore, f *auditFlags, _ []string) error {
	rows, older, err := eventRows(ctx, s, &f.eventFlags, func(m *manifest.Manifest) (rows []auditRow) {
		for _, e := range m.Audits {
			if f.Plugin == "" || e.Plugin == f.Plugin {
				rows = append(rows, auditRow{placeOf(m), e})
			}
		}
		return rows
	})
	if err != nil {
		return err
	}
	return a.print(auditList{rows, older}, func() {
		if len(rows) == 0 {
			a.println("there are no such audit events")
		}
		printList(a, "", "at|thread|turn|phase|subscription|event|manifest|details", rows, func(x *auditRow) cells {
			return cells{clock(x.At), x.ThreadID, x.TurnID, x.Phase, x.SubscriptionID, x.EventKind, x.ManifestID, auditDetails(&x.Audit)}
		})
		a.printOlder(older, "event")
	})
}

func (a *app) manifestCalls(ctx context.Context, s *openedStore, f *callsFlags, _ []string) error {
	rows, older, err := eventRows(ctx, s, &f.eventFlags, func(m *manifest.Manifest) (rows []callRow) {
		for _, c := range m.Calls {
			if (f.Tool == "" || c.Tool == f.Tool) && (f.Verdict == nil || slices.Contains(f.Verdict, string(c.Verdict))) {
				rows = append(rows, callRow{recorded: placeOf(m), Call: c})
			}
		}
		return rows
	})
	if err != nil {
		return err
	}
	scanner := secret.New()
	for i := range rows {
		c := &rows[i]
		if err := s.addKept(ctx, c); err != nil {
			return err
		}
		if !f.Text {
			for _, kept := range []*json.RawMessage{&c.Arguments, &c.ArgumentsCame, &c.FactsKept} {
				*kept = hideSecrets(scanner, *kept)
			}
		}
	}
	return a.print(callList{rows, older}, func() {
		if len(rows) == 0 {
			a.println("there are no such calls")
		}
		for i := range rows {
			a.printCall(&rows[i], f.Text)
		}
		a.printOlder(older, "call")
	})
}

// printCall prints a call in lines that fit a terminal; whole prints what was kept of it in full.
func (a *app) printCall(c *callRow, whole bool) {
	a.heading(words.If(a.out.Len() > 0, "\n") + spaced(clock(c.At), string(c.Phase), c.Tool, string(c.Verdict), resultOf(&c.Call)))
	for _, line := range []struct{ name, value string }{
		{"decided by", decidersOf(&c.Call)},
		{"rewritten by", strings.Join(c.RewrittenBy, ", ")},
		{"owner", c.Owner},
		{"facts", strings.Join(c.Facts, " ")},
		{"in", "record " + c.ManifestID + words.If(c.ThreadID != "", ", thread "+c.ThreadID) + words.If(c.TurnID != "", ", turn "+c.TurnID)},
	} {
		if line.value != "" {
			a.out.WriteString(wrapped(line.name+": "+line.value, 2))
		}
	}
	most := statusWidth
	if whole {
		most = math.MaxInt
	}
	for _, kept := range []struct {
		name string
		text json.RawMessage
	}{{"arguments", c.Arguments}, {"as they came", c.ArgumentsCame}, {"facts in full", c.FactsKept}} {
		if len(kept.text) > 0 {
			a.println(text.Sanitize("  "+kept.name+": "+string(kept.text), most))
		}
	}
}

// hideSecrets returns JSON with the secrets in its texts replaced; all of it is hidden if that does not leave JSON, or if
// there are so many that some may not be found.
func hideSecrets(scanner *secret.Scanner, kept json.RawMessage) json.RawMessage {
	const many = 100
	hidden, all := slices.Clone(kept), scanner.Find(string(kept))
	for _, found := range slices.Backward(all) {
		hidden = slices.Replace(hidden, found.Start, found.End, []byte("[hidden: "+found.Pattern+"]")...)
	}
	if len(kept) > 0 && (len(all) >= many || !json.Valid(hidden)) {
		return json.RawMessage(`"[hidden]"`)
	}
	return hidden
}

// addKept adds the arguments and the facts of a call, if they were kept; the arguments of a prompt are its text.
func (s *openedStore) addKept(ctx context.Context, c *callRow) error {
	went, came := c.Went, c.Came
	if c.Phase != phases.ToolPreCall && c.Phase != phases.PhaseToolCall && (c.Phase != phases.PrePolicy || c.Input == nil) { // what is hashed is something else
		went, came = "", ""
	}
	for _, kept := range []struct {
		to         *json.RawMessage
		hash, what string
	}{
		{&c.Arguments, went, "the arguments of a call"},
		{&c.ArgumentsCame, words.If(came != went, came), "the arguments of a call"},
		{&c.FactsKept, c.FactsHash, "the facts of a call"},
	} {
		if kept.hash == "" {
			continue
		}
		text, err := s.keptText(ctx, kept.hash, kept.what, c.ManifestID)
		if err != nil && !store.HasCode(err, store.CodeNotFound) {
			return err
		}
		*kept.to = json.RawMessage(text)
	}
	return nil
}

// callCells are a call without its place in the log.
func callCells(c *manifest.Call) cells {
	return cells{c.Phase, c.Tool, c.Owner, c.Verdict, resultOf(c), decidersOf(c), strings.Join(c.RewrittenBy, ", "), strings.Join(c.Facts, " "), c.Went}
}

// decidersOf says who decided a call, by which rule of theirs, and why.
func decidersOf(c *manifest.Call) string {
	by := make([]string, len(c.DecidedBy))
	for i, d := range c.DecidedBy {
		by[i] = d.Subscription + " (" + string(d.Verdict) + words.If(d.ReasonCode != "", " "+d.ReasonCode) + words.If(d.ContributionID != "", ", "+d.ContributionID) + words.If(d.Shadow, ", shadow") + ")"
	}
	return strings.Join(by, ", ")
}

// resultOf says in words what came of a call.
func resultOf(c *manifest.Call) string {
	code := words.If(c.Code != "", " ("+c.Code+")")
	switch {
	case c.Verdict == phases.VerdictDeny, c.Phase == phases.ToolPreCall && c.State != "", c.Code == string(phases.CauseForbidden), c.Code == string(phases.StateDenied):
		return "refused" + code
	case c.State == phases.StateSucceeded:
		return "made" + code
	case c.State == "":
		return ""
	}
	return "failed" + code
}

func (a *app) printCalls(calls []manifest.Call) {
	printList(a, "calls", "phase|tool|owner|verdict|result|decided by|rewritten by|?facts|went", calls, callCells)
}

// printRequests prints a row for each change, and one for each request without any.
func (a *app) printRequests(requests []manifest.Request) {
	t := newTable("requests", "prompt|change|what|in the record|sent")
	for i := range requests {
		r := &requests[i]
		for _, c := range r.Changes {
			t.add(r.ManifestID, c.Kind, c.ID, c.Manifest, c.Sent)
		}
		switch {
		case r.Omitted > 0:
			t.add(r.ManifestID, text.Thousands(r.Omitted)+" more", "", "", "")
		case len(r.Changes) == 0:
			t.add(r.ManifestID, "none", "", "", "")
		}
	}
	a.printTable(t)
}

// printHostEvents prints a row for each thing that a host said of itself.
func (a *app) printHostEvents(events []manifest.HostEvent) {
	printList(a, "events of the host", "event|call|what|?refused", events, func(e *manifest.HostEvent) cells {
		facts := make([]string, len(e.Facts))
		for i, f := range e.Facts {
			facts[i] = f.Name + "=" + clean(f.Value)
		}
		return cells{e.Event, e.CallID, strings.Join(facts, " "), clean(e.Refused)}
	})
}

func auditDetails(e *manifest.Audit) string {
	switch {
	case len(e.Details) > 0:
		return string(e.Details)
	case e.DetailsHash != "":
		return fmt.Sprintf("%d bytes, %s", e.DetailsBytes, e.DetailsHash)
	}
	return ""
}

func (a *app) printAudits(title string, audits []manifest.Audit) {
	printList(a, title, "phase|subscription|event|details", audits, func(e *manifest.Audit) cells { return cells{e.Phase, e.SubscriptionID, e.EventKind, auditDetails(e)} })
}
