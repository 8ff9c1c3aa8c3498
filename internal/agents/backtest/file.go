package backtest

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/agents/inputlog"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// reading is one file that is being judged.
type reading struct {
	*run

	file    *File
	tally   *Tally
	judges  []*bridge.Bridge  // the new configuration's, and the old one's
	held    []*agent.Said     // what began the session and its turn before the period
	waiting map[string]int    // rows whose results are to come, by the calls' ids
	prompts map[string]string // the last ones, by the agents' ids
	roots   map[string]agent.Event
	dir     string
	begun   bool
}

// file judges one file. Sessions of other files do not meet its own: it has bridges of its own.
func (r *run) file(ctx context.Context, f *File) *Tally {
	d := &reading{run: r, file: f, tally: newTally(), waiting: map[string]int{}, prompts: map[string]string{}, roots: map[string]agent.Event{}}
	for _, engine := range []bridge.Engine{r.Engine, r.Against} {
		if engine != nil {
			b := bridge.New(engine, r.Now)
			b.Judged = judged
			d.judges = append(d.judges, b)
		}
	}
	var lacks inputlog.Lacks
	for said, err := range f.Read(&lacks) {
		if err != nil {
			d.tally.problem(f.Path, err)
			break
		}
		if !d.say(ctx, *said) || ctx.Err() != nil {
			break
		}
	}
	d.end(context.WithoutCancel(ctx))
	if d.tally.sum(elsewhere) == 0 {
		d.tally.count(files, f.Source, 1)
	}
	d.tally.count(notKept, "", lacks.NotKept)
	d.tally.count(omitted, "", lacks.Omitted)
	d.tally.count(erased, "", lacks.Erased)
	return d.tally
}

// end forgets the file's sessions.
func (d *reading) end(ctx context.Context) {
	for _, b := range d.judges {
		for id := range d.roots {
			e := d.roots[id]
			_, _ = b.Handle(ctx, e.Place(d.file.Workspace), &e) // nothing is decided
		}
		_ = b.Close(ctx)
	}
	for _, i := range d.waiting {
		d.tally.became(&d.tally.Rows[i], "", "")
	}
}

// say takes what a transcript says next; false if the rest is of no interest.
func (d *reading) say(ctx context.Context, s agent.Said) bool {
	d.tally.count(unknown, "", s.Unknown)
	if s.Time.After(d.Now().Add(mostAhead)) {
		s.Time = time.Time{}
	}
	e := &s.Event
	if s.Version != "" {
		d.tally.count(versions, e.Host+" "+clip(s.Version, 40), 1)
	}
	if e.Step == agent.StepNone {
		return true
	}
	d.complete(e)
	if !d.begun {
		d.begun, d.dir = true, e.Dir
		if !within(d.Dir, e.Dir) {
			d.tally.count(elsewhere, "", 1)
			return false
		}
	}
	if !s.Time.IsZero() && s.Time.Before(d.Since) {
		d.tally.Cut = true
		d.hold(&s)
		return true
	}
	if d.tally.First.IsZero() {
		d.tally.First = s.Time
	}
	for _, earlier := range d.held {
		for _, b := range d.judges {
			d.handle(ctx, b, earlier) // its verdict is of another period
		}
	}
	d.held = nil
	d.event(ctx, &s)
	return true
}

// complete fills in what an event must have, as the reader of a hook's payload does.
func (d *reading) complete(e *agent.Event) {
	e.SessionID = clip(cmp.Or(e.SessionID, strings.TrimSuffix(filepath.Base(d.file.Path), filepath.Ext(d.file.Path))), phases.MaxIDBytes)
	if e.Dir = cmp.Or(e.Dir, d.dir); !filepath.IsAbs(e.Dir) {
		e.Dir = ""
	}
	if e.Step == agent.StepSubagent || e.Step == agent.StepSessionStart && (e.Source == "" || e.Source == "new") {
		e.Source = "startup"
	}
}

// hold keeps the beginnings of a session and of its turn, for calls in the period.
func (d *reading) hold(s *agent.Said) {
	switch e := &s.Event; e.Step {
	case agent.StepPrompt:
		d.held = slices.DeleteFunc(d.held, func(h *agent.Said) bool { return h.Event.Step == agent.StepPrompt && h.Event.AgentID == e.AgentID })
	case agent.StepSessionStart, agent.StepResume:
		d.held = nil
	case agent.StepSubagent:
	default:
		return
	}
	if len(d.held) < mostHeld {
		d.held = append(d.held, s)
	}
}

const (
	mostHeld  = 64
	mostAhead = 48 * time.Hour // of the clock: a later time is none
)

// event has an event judged, and counts it.
func (d *reading) event(ctx context.Context, s *agent.Said) {
	e := &s.Event
	var verdicts []*judgement
	for _, b := range d.judges {
		verdicts = append(verdicts, d.handle(ctx, b, s))
	}
	if ctx.Err() != nil {
		return
	}
	d.tally.count(sessions, e.SessionID, 1)
	if d.Calls != nil {
		if e.Step == agent.StepToolCall {
			d.Progress.Calls.Add(1)
			d.Calls(e, func() string { line, _ := d.describe(&e.Call, ""); return line })
		}
		return
	}
	switch e.Step {
	case agent.StepPrompt, agent.StepSubagent:
		d.prompts[e.AgentID] = e.Text
		d.count(prompts, s, verdicts)
	case agent.StepToolCall:
		d.Progress.Calls.Add(1)
		d.tally.count(days, day(s.Time), 1)
		d.count(calls, s, verdicts)
	case agent.StepToolResult:
		d.tally.count(results, "", 1)
		if verdicts[0].rewritten {
			d.tally.count(rewritten, "", 1)
		}
		if i, ok := d.waiting[e.Call.ID]; ok {
			delete(d.waiting, e.Call.ID)
			d.tally.became(&d.tally.Rows[i], s.Became, s.By)
		}
	default: // nothing is decided
	}
}

// count counts a judged call or prompt, and keeps a row of it if there is something to say.
func (d *reading) count(k kind, s *agent.Said, js []*judgement) {
	now, e := js[0], &s.Event
	d.tally.count(k, string(now.verdict), 1)
	row := Row{Verdict: now.verdict, By: now.by}
	switch {
	case len(js) > 1 && js[1].verdict == now.verdict, len(js) == 1 && now.verdict == Allow:
		return
	case len(js) > 1:
		row.Was = js[1].verdict
		if now.verdict == Allow {
			row.By = js[1].by
		}
	}
	row.Agent, row.Session, row.Dir, row.Time, row.Tool = e.Host, e.SessionID, e.Dir, s.Time.UTC(), e.Call.Tool
	row.Call, row.Shape = d.describe(&e.Call, e.Text)
	if k == calls {
		row.Prompt = d.hide(d.prompts[e.AgentID], mostPrompt)
	}
	for i := range row.By {
		row.By[i].Reason = d.hide(row.By[i].Reason, mostReason)
	}
	if d.tally.row(row) && k == calls {
		d.waiting[e.Call.ID] = len(d.tally.Rows) - 1
	}
}

// handle runs an event through a bridge. Its context carries what [judged] fills in.
func (d *reading) handle(ctx context.Context, b *bridge.Bridge, s *agent.Said) *judgement {
	j, e, copied := &judgement{}, &s.Event, s.Event
	where := e.Place(d.file.Workspace)
	where.Now = s.Time
	out, err := b.Handle(context.WithValue(ctx, judgementKey{}, j), where, &copied)
	if e.AgentID == "" && d.roots[e.SessionID].SessionID == "" && len(d.roots) < mostHeld {
		d.roots[e.SessionID] = agent.Event{Agent: e.Agent, Host: e.Host, Step: agent.StepSessionEnd, SessionID: e.SessionID, ParentID: e.ParentID, Dir: e.Dir, Source: "other"}
	}
	j.settle(&out, err)
	return j
}

// judgement is what a configuration decides about an event.
type judgement struct {
	verdict   Verdict
	by        []Decision
	rewritten bool // the result
}

type judgementKey struct{}

// judged takes from the outcome of a call's judgement what is reported.
func judged(ctx context.Context, _ loop.Call, out *phases.Outcome) {
	j, ok := ctx.Value(judgementKey{}).(*judgement)
	if !ok {
		return
	}
	j.verdict, j.by = Allow, nil
	switch {
	case out.Error != nil:
		j.verdict, j.by = Fail, []Decision{{out.Error.Subscription, out.Error.Message, string(out.Error.Code)}}
	case out.Decision != nil && out.Decision.Verdict != phases.VerdictAllow:
		j.verdict = Verdict(out.Decision.Verdict)
		for _, r := range out.Decision.Reasons {
			if r.Verdict == out.Decision.Verdict {
				j.by = append(j.by, Decision{r.Subscription, r.Reason, r.ReasonCode})
			}
		}
	case len(out.Merged.Rewrites) > 0:
		j.verdict = Rewrite
		for i := range out.Merged.Rewrites {
			if d := (Decision{Hook: out.Merged.Rewrites[i].Owner}); !slices.Contains(j.by, d) {
				j.by = append(j.by, d)
			}
		}
	}
}

// settle adds what the outcome of the event says beyond that of its phase.
func (j *judgement) settle(out *agent.Outcome, err error) {
	switch j.rewritten = out.Result != nil; {
	case err != nil:
		j.verdict, j.by = Fail, []Decision{{"", err.Error(), string(phases.CodeOf(err))}}
	case j.verdict == "" && out.Verdict != "": // a prompt, or a call that no hook could be sent
		j.verdict, j.by = Verdict(out.Verdict), []Decision{{out.By, out.Reason, ""}}
	case j.verdict == "":
		j.verdict = Allow
	}
}

// within reports whether a directory is another one or below it; everything is below none.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir == "" || err == nil && filepath.IsLocal(rel)
}

// String is how people read a decision.
func (d *Decision) String() string {
	return fmt.Sprintf("%s: %s", cmp.Or(d.Hook, "grapnel"), cmp.Or(d.Reason, d.Code, "no reason given"))
}
