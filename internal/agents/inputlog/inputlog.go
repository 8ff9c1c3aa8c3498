// Package inputlog reads sessions back from the log, as agents' transcripts tell them, as far as their inputs were kept
// (manifest.keep_inputs). [Threads] finds them, and [Read] streams one. Sessions of hosts that are no agents are told, too:
// their events have no agent.
//
// The log has less than a transcript: what the assistant said was never kept, so the end of a turn has no text.
//
// Stability: internal.
package inputlog

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// Lacks counts calls and prompts that cannot be told, or not with their results: recorded while inputs were not kept,
// omitted for want of room in their record or because the result was withheld, or erased since.
type Lacks struct{ NotKept, Omitted, Erased int }

// Threads yields the threads that have records since a time, the latest begun first; of one workspace unless that is empty.
// An error ends it.
func Threads(ctx context.Context, s *store.Store, workspace string, since time.Time) iter.Seq2[store.Thread, error] {
	const atOnce = 256
	return func(yield func(store.Thread, error) bool) {
		page, err := s.Threads(ctx, workspace, 0, atOnce)
		for err == nil && len(page) > 0 {
			for i := range page {
				if !page[i].NewestAt.Before(since) && !yield(page[i], nil) {
					return
				}
			}
			page, err = s.Threads(ctx, workspace, page[len(page)-1].ID, atOnce)
		}
		if err != nil {
			yield(store.Thread{}, err)
		}
	}
}

// Read yields what a thread's records say, in their order, from the turn on in which the given time lies. It reads the log in
// pages. What cannot be told is added to lacks, and to Unknown of what comes next, or of a last Said without a step. An error
// ends it.
func Read(ctx context.Context, s *store.Store, workspace, thread string, since time.Time, lacks *Lacks) iter.Seq2[*agent.Said, error] {
	return transcript.Tell(nil, func(t *transcript.Teller) error {
		r := reader{Teller: t, lacks: lacks}
		for page, err := range s.Inputs(ctx, workspace, thread, since) {
			if err != nil {
				return err
			}
			r.texts = page.Texts
			for _, m := range page.Manifests {
				if r.record(m); r.Done {
					return nil
				}
			}
		}
		r.endTurn()
		return nil
	})
}

// mostWaiting bounds the calls that wait for their results; the oldest are forgotten.
const mostWaiting = 256

// reader tells the records of one thread.
type reader struct {
	*transcript.Teller

	lacks   *Lacks
	texts   map[string]string // by their hashes
	begun   bool
	begins  agent.Step  // of the session
	end     *agent.Said // of the turn under way; nil without one
	waiting []waiting
}

// waiting is a call whose result is to come.
type waiting struct {
	manifest.Call

	id string // unique in the thread
}

func (r *reader) record(m *manifest.Manifest) {
	for i := range m.Calls {
		c := &m.Calls[i]
		if c.Input == nil {
			if c.Phase == phases.ToolPreCall {
				r.lacks.NotKept++
				r.Unknown()
			}
			continue
		}
		var place manifest.Place
		input, kept := r.texts[cmp.Or(c.Input.Arguments, c.Came)]
		if json.Unmarshal([]byte(r.texts[c.Input.Place]), &place) != nil || !kept {
			r.lack(c)
			continue
		}
		e := agent.Event{Agent: agents.Lookup(place.Host), Host: place.Host, SessionID: cmp.Or(m.SessionID, m.ThreadID), AgentID: place.AgentID, Dir: place.Dir, ParentID: place.ParentSessionID}
		r.begins = agent.StepSessionStart
		if place.AgentID != "" && e.SessionID == e.ParentID+"/"+place.AgentID { // a subagent: its session is the agent's
			e.SessionID, e.ParentID, r.begins = e.ParentID, "", agent.StepSubagent
		}
		if c.Phase == phases.PrePolicy {
			e.TurnID = m.TurnID
			r.prompt(c, &e, input)
			continue
		}
		if r.end != nil {
			e.TurnID, e.Model = r.end.Event.TurnID, r.end.Event.Model
		}
		e.Step = agent.StepToolCall
		e.Call = agent.Call{ID: cmp.Or(c.CallID, m.ManifestID+"#"+strconv.Itoa(i)), Tool: c.Tool, Arguments: json.RawMessage(input), Paths: place.Paths}
		if c.Phase == phases.ToolPreCall {
			r.call(c, &e)
		} else {
			r.result(c, &e)
		}
	}
}

// lack counts a call whose texts are not there.
func (r *reader) lack(c *manifest.Call) {
	if r.Unknown(); c.Input.Omitted > 0 {
		r.lacks.Omitted++
	} else {
		r.lacks.Erased++
	}
}

func (r *reader) prompt(c *manifest.Call, e *agent.Event, input string) {
	var in phases.PrePolicyInput
	_ = json.Unmarshal([]byte(input), &in) // it was made of one
	r.endTurn()
	if e.Step = agent.StepPrompt; !r.begun && r.begins == agent.StepSubagent {
		e.Step, e.Source = agent.StepSubagent, "startup"
	}
	e.Text, e.Model = in.UserText.Value, in.Model
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiting) bool { return w.CallID == "" })
	r.said(c, e, "", "")
	e.Step, e.Text, e.Source = agent.StepStop, "", ""
	r.end = &agent.Said{Event: *e, Time: c.Input.At}
}

func (r *reader) endTurn() {
	if r.end != nil {
		r.Say(r.end)
	}
	r.end = nil
}

// waits finds the call that a result or another judgement belongs to, by the host's id or else by what was called.
func (r *reader) waits(c *manifest.Call) int {
	arguments := cmp.Or(c.Input.Arguments, c.Came)
	return slices.IndexFunc(r.waiting, func(w waiting) bool {
		if w.CallID != "" && c.CallID != "" {
			return w.CallID == c.CallID
		}
		return w.Tool == c.Tool && (w.Came == arguments || w.Went == arguments)
	})
}

// call tells a call, once: some agents have it judged again when they ask a person, and some without its id.
func (r *reader) call(c *manifest.Call, e *agent.Event) {
	at := r.waits(c)
	if at >= 0 && r.waiting[at].CallID != "" {
		e.Call.ID = r.waiting[at].id
	} else {
		r.said(c, e, "", "")
		r.waiting = append(r.waiting[max(0, len(r.waiting)+1-mostWaiting):], waiting{*c, e.Call.ID})
	}
	if c.Verdict != phases.VerdictDeny && c.State == "" {
		return
	}
	by := c.Code
	for _, d := range slices.Backward(c.DecidedBy) {
		if d.Verdict == phases.VerdictDeny && !d.Shadow {
			by = d.Subscription
		}
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiting) bool { return w.id == e.Call.ID })
	e.Step, e.IsError = agent.StepToolResult, true
	r.said(c, e, agent.Refused, by)
}

// result tells a result, and before it the call if no hook has judged that.
func (r *reader) result(c *manifest.Call, e *agent.Event) {
	if at := r.waits(c); at >= 0 {
		e.Call.ID = r.waiting[at].id
		r.waiting = slices.Delete(r.waiting, at, at+1)
	} else {
		r.said(c, e, "", "")
	}
	var kept bool
	if e.Result, kept = r.texts[c.Went]; !kept {
		r.lack(c)
	}
	became := agent.Ran
	if e.Step, e.IsError = agent.StepToolResult, c.Code != ""; e.IsError {
		became = agent.Failed
	}
	r.said(c, e, became, "")
}

// said says an event, and first that the session has begun, unless the prompt of a subagent says that.
func (r *reader) said(c *manifest.Call, e *agent.Event, became agent.Became, by string) {
	if !r.begun && e.Step != agent.StepSubagent {
		begins := *e
		begins.Step, begins.Source, begins.Text, begins.Call = r.begins, "startup", "", agent.Call{}
		if r.begins == agent.StepSessionStart {
			begins.AgentID = ""
		}
		r.Say(&agent.Said{Event: begins, Time: c.Input.At})
	}
	r.begun = true
	r.Say(&agent.Said{Event: *e, Time: c.Input.At, Became: became, By: by})
}
