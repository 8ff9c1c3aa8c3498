package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

type (
	appendParams struct {
		Handle  string          `json:"handle"          jsonschema:"the turn, as turn/begin gave it"`
		Entries []history.Entry `json:"entries"         jsonschema:"entries of the turn, in order, each with an id that is unique in the thread"`
		Actor   string          `json:"actor,omitempty"`
	}
	entriesParams struct {
		WorkspaceID string `json:"workspace_id"`
		ThreadID    string `json:"thread_id"`
		BeforeSeq   int64  `json:"before_seq,omitempty" jsonschema:"only entries below this number; for the page before"`
		Limit       int    `json:"limit,omitempty"      jsonschema:"at most so many, 100 if absent"`
		Actor       string `json:"actor,omitempty"`
	}
	summarizeParams struct {
		Handle    string `json:"handle,omitempty"       jsonschema:"a turn of the thread, in which the phases then run. Without one give workspace_id and thread_id"`
		Workspace string `json:"workspace_id,omitempty"` // which is the turn's if there is a handle
		ThreadID  string `json:"thread_id,omitempty"`
		Through   string `json:"through"                jsonschema:"the id of the last entry that the summary stands for"`
		Text      string `json:"text"                   jsonschema:"the summary, as the client's model wrote it"`
		Trigger   string `json:"trigger,omitempty"      jsonschema:"why, in the client's words, for turn.pre_compaction"`
		Actor     string `json:"actor,omitempty"`
	}
	appended struct {
		Seqs []int64 `json:"seqs" jsonschema:"the numbers of the entries in the thread, in order"`
	}
	keptEntry struct {
		Seq        int64         `json:"seq"`
		At         time.Time     `json:"at"`
		TurnStatus string        `json:"turn_status" jsonschema:"how its turn ended; empty if it has not, or was lost with its gateway"`
		Entry      history.Entry `json:"entry"`
	}
	entriesPage struct {
		Summary    string      `json:"summary"     jsonschema:"stands for the entries up to through_seq in later prompts; empty for none"`
		ThroughSeq int64       `json:"through_seq" jsonschema:"-1 without a summary"`
		Entries    []keptEntry `json:"entries"     jsonschema:"in the order of the thread"`
		More       bool        `json:"more"        jsonschema:"whether there are older ones"`
	}
	summarized struct {
		ThroughSeq     int64           `json:"through_seq"     jsonschema:"the number of the last entry that the summary stands for; -1 if it was not kept"`
		PreCompaction  *phases.Outcome `json:"pre_compaction"`
		PostCompaction *phases.Outcome `json:"post_compaction" jsonschema:"null if turn.pre_compaction failed closed: the summary was not kept then"`
	}
)

// For is the result as the audience may see it.
func (s *summarized) For(who phases.Audience) *summarized {
	shown := *s
	shown.PreCompaction, shown.PostCompaction = s.PreCompaction.For(who), s.PostCompaction.For(who)
	return &shown
}

const methodEntries = "thread/entries"

func (g *Gateway) conversationMethods() []rpc.Method {
	return []rpc.Method{
		method(group{}, "thread/append", rpc.DispatchRight,
			"Appends entries of a kept turn to its thread's conversation, where serve.conversations keeps one. An entry whose id is there already is not appended again; with another content it is an error, and nothing is appended.",
			g.appendEntries),
		method(group{within: callTime}, methodEntries, rpc.DispatchRight,
			"Reads a thread's conversation, the newest entries first, page by page.",
			g.entries),
		method(group{}, "thread/summarize", rpc.DispatchRight,
			"Keeps a summary of a thread's conversation up to an entry: later prompts have it in place of those. Runs turn.pre_compaction before, and turn.post_compaction afterwards. The entries stay.",
			g.summarize),
	}
}

// conversationOf refuses a workspace that has no conversations.
func (g *Gateway) conversationOf(workspace string) (ConversationLog, error) {
	o := &g.opts.Conversations
	if !o.keeps(workspace) {
		return nil, rpc.Errorf(rpc.CodeUnavailable, "this gateway keeps no conversations of the workspace %q: see serve.conversations in its configuration", workspace)
	}
	return o.Log, nil
}

func (g *Gateway) appendEntries(ctx context.Context, c call[appendParams]) (*appended, error) {
	if n := len(c.params.Entries); n > maxAppend {
		return nil, rpc.Errorf(rpc.CodeTooLarge, "entries: %d are too many; append at most %d at a time", n, maxAppend)
	}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*appended, error) {
		log, err := g.conversationOf(k.context.WorkspaceID)
		if err != nil {
			return nil, err
		}
		list := make([]store.ConversationEntry, len(c.params.Entries))
		for i := range c.params.Entries {
			if list[i], err = keptForm(fmt.Sprintf("entries.%d", i), &c.params.Entries[i], k.context.TurnID); err != nil {
				return nil, err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		if err := log.AppendConversation(ctx, k.scope(), k.context.TurnID, g.opts.Now(), list); err != nil {
			return nil, wireError(err)
		}
		done := &appended{Seqs: make([]int64, len(list))}
		for i := range list {
			done.Seqs[i] = list[i].Seq
		}
		k.appended.Add(int64(len(list)))
		return done, nil
	})
}

func (k *keptTurn) scope() store.Scope {
	return store.Scope{WorkspaceID: k.context.WorkspaceID, ThreadID: k.context.ThreadID, Actor: k.context.Actor.Name()}
}

// keptForm checks an entry of a turn, and returns what is kept of it.
func keptForm(name string, e *history.Entry, turn string) (store.ConversationEntry, error) {
	var none store.ConversationEntry
	if err := phases.CheckID("id", e.ID); err != nil || e.ID == "" {
		return none, rpc.Errorf(rpc.CodeInvalid, "%s.id: it is missing, or longer than %d bytes", name, phases.MaxIDBytes)
	}
	if e.TurnID = cmp.Or(e.TurnID, turn); e.TurnID != turn {
		return none, rpc.Errorf(rpc.CodeInvalid, "%s.turn_id: the turn is %.80q; omit it", name, turn)
	}
	if !e.Role.Known() {
		return none, rpc.Errorf(rpc.CodeInvalid, "%s.role: %.40q is not user, assistant or tool", name, e.Role)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return none, rpc.Errorf(rpc.CodeInvalid, "%s: %v", name, err)
	}
	if len(raw) > maxEntryBytes {
		return none, rpc.Errorf(rpc.CodeTooLarge, "%s: it has %d bytes, and may have %d; give media by uri, and trim results (max_result_chars)", name, len(raw), maxEntryBytes)
	}
	return store.ConversationEntry{ID: e.ID, Entry: raw}, nil
}

func (g *Gateway) entries(ctx context.Context, c call[entriesParams]) (*entriesPage, error) {
	p := &c.params
	if p.Limit < 0 || p.Limit > maxPage || p.BeforeSeq < 0 {
		return nil, rpc.Errorf(rpc.CodeInvalid, "limit: between 1 and %d; before_seq: not negative", maxPage)
	}
	log, err := g.threadLog(ctx, c.Caller, p.WorkspaceID, p.ThreadID)
	if err != nil {
		return nil, err
	}
	read, err := log.Conversation(ctx, store.ConversationQuery{
		WorkspaceID: p.WorkspaceID, ThreadID: p.ThreadID, Before: p.BeforeSeq, Limit: cmp.Or(p.Limit, 100), Bytes: entriesBytes,
		Expect: func(bytes int) error { return rpc.Expect(ctx, answerBytes+bytes*entryFactor) },
	})
	if err != nil {
		return nil, err
	}
	page := &entriesPage{Summary: read.Summary, ThroughSeq: read.Through, Entries: make([]keptEntry, len(read.Entries)), More: read.More}
	for i := range read.Entries {
		e := &read.Entries[i]
		page.Entries[i] = keptEntry{Seq: e.Seq, At: e.At, TurnStatus: e.Status}
		if err := json.Unmarshal(e.Entry, &page.Entries[i].Entry); err != nil {
			return nil, fmt.Errorf("entry %d of a conversation: %w", e.Seq, err)
		}
	}
	return page, nil
}

// threadLog checks that a caller may have a workspace's conversations, and that there are any.
func (g *Gateway) threadLog(ctx context.Context, c *rpc.Caller, workspace, thread string) (ConversationLog, error) {
	if workspace == "" || thread == "" {
		return nil, rpc.Errorf(rpc.CodeInvalid, "workspace_id and thread_id are needed")
	}
	where := phases.Context{WorkspaceID: workspace, ThreadID: thread}
	if err := phases.CheckContext(&where); err != nil {
		return nil, rpc.Errorf(rpc.CodeTooLarge, "%s", err.Message)
	}
	if err := g.checkWorkspace(ctx, c, workspace); err != nil {
		return nil, err
	}
	return g.conversationOf(workspace)
}

func (g *Gateway) summarize(ctx context.Context, c call[summarizeParams]) (*summarized, error) {
	p := &c.params
	switch {
	case p.Text == "" || len(p.Text) > maxSummary:
		return nil, rpc.Errorf(rpc.CodeInvalid, "text: it has %d bytes, and must have 1 to %d", len(p.Text), maxSummary)
	case p.Handle != "" && p.Workspace+p.ThreadID != "":
		return nil, rpc.Errorf(rpc.CodeInvalid, "handle and workspace_id are both there: give one")
	case p.Handle != "":
		return inTurn(ctx, g, c.Caller, p.Handle, func(ctx context.Context, k *keptTurn) (*summarized, error) {
			return g.compact(ctx, &k.context, p, k.Dispatch)
		})
	}
	if _, err := g.threadLog(ctx, c.Caller, p.Workspace, p.ThreadID); err != nil {
		return nil, err
	}
	where, err := g.completeContext(ctx, c.Caller, "context", phases.Context{WorkspaceID: p.Workspace, ThreadID: p.ThreadID})
	if err != nil {
		return nil, err
	}
	return g.compact(ctx, &where, p, func(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
		return g.opts.Engine.Dispatch(ctx, where, in)
	})
}

// compact keeps a summary between the phases that are about it.
func (g *Gateway) compact(ctx context.Context, where *phases.Context, p *summarizeParams, dispatch func(ctx context.Context, in phases.Input) (*phases.Outcome, error)) (*summarized, error) {
	log, err := g.conversationOf(where.WorkspaceID)
	if err != nil {
		return nil, err
	}
	before := &phases.PreCompactionInput{Trigger: p.Trigger, SourceRange: phases.SourceRange{To: p.Through}}
	after := &phases.PostCompactionInput{Summary: phases.NewPreview(p.Text, phases.MaxTurnText)}
	for _, in := range []phases.Input{before, after} {
		if err := phases.ValidateInput(in); err != nil {
			return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
		}
	}
	done := &summarized{ThroughSeq: -1}
	out, err := dispatch(ctx, before)
	if done.PreCompaction = out; out == nil {
		return nil, engineError(err)
	}
	if err != nil {
		return done, nil //nolint:nilerr // the outcome says so
	}
	if done.ThroughSeq, err = log.SummarizeConversation(ctx, where.WorkspaceID, where.ThreadID, p.Through, p.Text, g.opts.Now()); err != nil {
		return nil, summaryError(err)
	}
	if done.PostCompaction, err = dispatch(ctx, after); done.PostCompaction == nil {
		return nil, engineError(err)
	}
	return done, nil
}

// summaryError is about the entry, and not about a manifest.
func summaryError(err error) error {
	if e, ok := errors.AsType[*store.Error](err); ok && e.Code == store.CodeNotFound {
		return &rpc.Error{Code: rpc.CodeNotFound, Message: e.Message, Err: e}
	}
	return wireError(err)
}
