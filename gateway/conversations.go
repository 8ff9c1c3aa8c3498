package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// Conversations says for which workspaces a gateway keeps conversations, and how much of one follows a prompt.
type Conversations struct {
	// Workspaces are ids, or "*" for all. None keeps nothing.
	Workspaces []string
	// Log keeps them; needed if there are workspaces.
	Log ConversationLog
	// CountTokens counts the tokens of a text; needed if there are workspaces.
	CountTokens func(string) int
	// ContextTokens (128,000) is how much the model reads, ReserveTokens (16,000) what of it is kept free for the response.
	// MaxEntries (200) bounds the entries of the past.
	ContextTokens, ReserveTokens, MaxEntries int
}

// ConversationLog is what the gateway needs of a *store.Store.
type ConversationLog interface {
	AppendConversation(ctx context.Context, of store.Scope, turnID string, at time.Time, entries []store.ConversationEntry) error
	EndConversationTurn(ctx context.Context, workspace, thread, turnID, status string) error
	Conversation(ctx context.Context, q store.ConversationQuery) (store.Conversation, error)
	SummarizeConversation(ctx context.Context, workspace, thread, through, summary string, at time.Time) (int64, error)
	SweepConversations(ctx context.Context) (int, error)
}

var _ ConversationLog = (*store.Store)(nil)

// Bounds of conversations.
const (
	maxEntryBytes  = 512 << 10 // of one entry, as JSON
	maxAppend      = 100       // entries of one thread/append
	maxPage        = 500       // entries of one thread/entries
	entriesBytes   = 2 << 20   // of one thread/entries
	windowBytes    = 4 << 20   // of the entries after a prompt
	entryFactor    = 4         // what an entry takes in memory: read, decoded, encoded
	maxSummary     = 256 << 10
	mostEstimators = 1024
	turnEntries    = 200 // how many entries a turn is expected to have that another gateway began
)

func (c *Conversations) complete() error {
	c.ContextTokens, c.ReserveTokens, c.MaxEntries = cmp.Or(c.ContextTokens, config.DefaultContextTokens), cmp.Or(c.ReserveTokens, config.DefaultReserveTokens), cmp.Or(c.MaxEntries, 200)
	switch {
	case len(c.Workspaces) > 0 && (c.Log == nil || c.CountTokens == nil):
		return errors.New("gateway: Conversations needs a Log and CountTokens")
	case c.MaxEntries < 0 || c.ReserveTokens < 0 || c.ReserveTokens >= c.ContextTokens:
		return fmt.Errorf("gateway: conversations: a context of %d tokens has no room for a response of %d", c.ContextTokens, c.ReserveTokens)
	}
	return nil
}

// keeps reports whether a workspace has conversations.
func (c *Conversations) keeps(workspace string) bool {
	return slices.Contains(c.Workspaces, workspace) || slices.Contains(c.Workspaces, "*")
}

func (c *Conversations) settings(scale history.Scale) history.Settings {
	return history.Settings{ContextTokens: c.ContextTokens, ReserveTokens: c.ReserveTokens, MaxEntries: c.MaxEntries, Scale: scale}
}

// estimators learn what models charge, for each workspace by itself: none may lead another's astray.
type estimators struct {
	mu sync.Mutex
	of recent.Map[*history.Estimator]
}

func (e *estimators) find(workspace, model string) *history.Estimator {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := workspace + "\x00" + model
	found, ok := e.of.Get(key)
	if !ok {
		found = history.NewEstimator(model)
		e.of.Put(workspace, key, found)
	}
	return found
}

// past is what a prompt's conversation is chosen from.
type past struct {
	summary    string
	through    int64
	entries    []history.Entry // of earlier turns
	turn       []history.Entry // of the current one
	more       bool            // older entries were not read
	estimator  *history.Estimator
	conditions *Conversations
}

// demand is what a compilation takes besides the history: memory, and entries of its turn.
type demand struct{ bytes, entries int }

// readHistory reserves memory and reads the end of a thread's conversation; nil if the workspace has none. Entries of turns that were blocked are
// omitted: their messages must reach no model.
func (g *Gateway) readHistory(ctx context.Context, where *phases.Context, model string, r demand) (*past, error) {
	o := &g.opts.Conversations
	if err := rpc.Expect(ctx, r.bytes); err != nil || !o.keeps(where.WorkspaceID) {
		return nil, err
	}
	read, err := o.Log.Conversation(ctx, store.ConversationQuery{
		WorkspaceID: where.WorkspaceID, ThreadID: where.ThreadID, Unsummarized: true,
		Limit: o.MaxEntries + 1 + turnEntries + r.entries, Bytes: windowBytes,
		Expect: func(bytes int) error { return rpc.Expect(ctx, r.bytes+bytes*entryFactor) },
	})
	if err != nil {
		return nil, wireError(err)
	}
	if read.More && read.Entries[0].TurnID == where.TurnID {
		return nil, rpc.Errorf(rpc.CodeTooLarge, "the turn's entries are longer than what may follow a prompt (%d MiB, or too many of them): summarize those that are done (thread/summarize)", windowBytes>>20)
	}
	p := &past{summary: read.Summary, through: read.Through, more: read.More, estimator: g.estimators.find(where.WorkspaceID, model), conditions: o}
	for i := range read.Entries {
		var e history.Entry
		if err := json.Unmarshal(read.Entries[i].Entry, &e); err != nil {
			return nil, fmt.Errorf("entry %d of a conversation: %w", read.Entries[i].Seq, err)
		}
		switch {
		case e.TurnID == where.TurnID:
			p.turn = append(p.turn, e)
		case read.Entries[i].Status != string(phases.TurnBlocked):
			p.entries = append(p.entries, e)
		}
	}
	return p, nil
}

// choose chooses what follows a prompt, and what its record says of that.
func (p *past) choose(prompt *compiler.Prompt, tools []phases.Tool) (*history.Window, *manifest.History) {
	fixed := []string{prompt.FullText}
	for _, m := range slices.Concat(prompt.SystemMessages, prompt.UserMessages) {
		fixed = append(fixed, m.Text)
	}
	w, err := history.Select(history.Input{Summary: p.summary, Entries: p.entries, Fixed: fixed, Tools: tools, Turn: p.turn},
		p.conditions.settings(p.estimator.Scale()), p.conditions.CountTokens)
	if err != nil {
		return nil, nil // never: complete has checked the settings
	}
	if p.more {
		w.Compaction = history.CompactNow
	}
	record := w.Record(p.turn, int(p.through+1))
	if w.Dropped == nil {
		w.Dropped = []history.Dropped{}
	}
	return &w, &record
}

// compileWithHistory compiles with what the workspace keeps of the thread's conversation, if it keeps any.
func (g *Gateway) compileWithHistory(
	ctx context.Context, where *phases.Context, r demand, in runtime.CompileInput, compile func(in runtime.CompileInput) (*runtime.Compiled, error),
) (*compiledTurn, *sentWindow, error) {
	p, err := g.readHistory(ctx, where, in.Model, r)
	if err != nil {
		return nil, nil, err
	}
	var window *history.Window
	if p != nil {
		given := in.HostTools
		in.HistoryOf = func(prompt *compiler.Prompt, tools []phases.Tool) (record *manifest.History) {
			window, record = p.choose(prompt, slices.Concat(given, tools))
			return record
		}
	}
	done, err := newCompiledTurn(compile(in))
	if err != nil || done.Prompt == nil || window == nil {
		return done, nil, err
	}
	sent := &sentWindow{*window, p.estimator} // with the slices as they were chosen
	done.Conversation = window
	window.Entries = append(slices.Clip(window.Entries), p.turn...)
	return done, sent, nil
}

// finishTurn ends a detached turn, in its conversation too.
func (g *Gateway) finishTurn(ctx context.Context, k *keptTurn, end *phases.PostTurnInput) (*phases.Outcome, error) {
	out, err := g.turns.finish(ctx, k, end)
	if k.appended.Load() > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnPatience)
		defer cancel()
		status := cmp.Or(string(end.Status), string(phases.TurnSucceeded))
		if lost := g.opts.Conversations.Log.EndConversationTurn(ctx, k.context.WorkspaceID, k.context.ThreadID, k.context.TurnID, status); lost != nil {
			g.opts.Logger.Warn("how a turn ended is missing in its conversation", slog.String("turn", k.context.TurnID), slog.Any("error", lost))
		}
	}
	return out, err
}

// learn tells the estimator what a provider charged for a prompt with its conversation, and forgets the window: a round
// is reported once.
func (k *keptTurn) learn(u phases.Usage) {
	if sent := k.sent.Swap(nil); sent != nil && u.InputTokens > 0 {
		sent.estimator.Report(sent.window, u.InputTokens)
	}
}

// sentWindow is what followed the last prompt of a turn.
type sentWindow struct {
	window    history.Window
	estimator *history.Estimator
}

// sweepConversations removes what deleted threads have left.
func (g *Gateway) sweepConversations(ctx context.Context) {
	if g.opts.Conversations.Log == nil {
		return
	}
	if _, err := g.opts.Conversations.Log.SweepConversations(ctx); err != nil && ctx.Err() == nil {
		g.opts.Logger.Warn("conversations of deleted threads could not be removed; the next attempt is in an hour", "error", err)
	}
}
