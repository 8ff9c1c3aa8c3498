package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// ReloadCause says what asked for a reload.
type ReloadCause string

// The causes.
const (
	// ReloadSignal is SIGHUP.
	ReloadSignal ReloadCause = "signal"
	// ReloadWatch is a change of a file that is watched.
	ReloadWatch ReloadCause = "watch"
	// ReloadCall is the method config/reload.
	ReloadCall ReloadCause = "call"
)

// Loaded is what the operator's files say now. Reading them has changed nothing.
type Loaded struct {
	// Config names where the configuration was read.
	Config string
	// Roots and PromptChars are those of Options.
	Roots       []string
	PromptChars int
	// Tokens are who is let in from now on; nil leaves that as it is, so that a
	// reload never opens a gateway nor closes an open one.
	Tokens []rpc.Token
	// Changed are the keys that have another value than before, for people.
	Changed []string
	// Apply puts everything in force that is not the gateway's. When it fails,
	// nothing may have changed. It is called once, and nothing fails behind it.
	Apply func(ctx context.Context) error

	_ struct{}
}

// RestartError refuses files with settings that only a restart changes.
type RestartError struct {
	// Keys are those settings.
	Keys []string
	// Err says so for people, with their places.
	Err error
}

// Error implements error.
func (e *RestartError) Error() string { return e.Err.Error() }

// Unwrap returns the mistakes with their places.
func (e *RestartError) Unwrap() error { return e.Err }

// Mistake is one mistake in a file, with its place.
type Mistake struct {
	File string `json:"file"`
	// Line and Column count from 1; both are 0 for a mistake without a place.
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	// Snippet is the line, and below it a caret; empty without a place.
	Snippet string `json:"snippet"`
}

// Reload is one attempt to put the operator's files in force again.
type Reload struct {
	At     time.Time   `json:"at"      jsonschema:"when it ended"`
	TookMS float64     `json:"took_ms"`
	Cause  ReloadCause `json:"cause"   jsonschema:"signal is SIGHUP, watch a file that has changed, call the method config/reload"`
	Actor  string      `json:"actor"   jsonschema:"who called; empty for the other causes"`
	OK     bool        `json:"ok"      jsonschema:"false: nothing was changed, for the reason in error"`
	Config string      `json:"config"  jsonschema:"the file of the configuration; empty where it was not found out"`
	// Changed is empty for a reload that failed, and for one that brought nothing new.
	Changed      []string  `json:"changed"       jsonschema:"keys with another value than before"`
	Tokens       *int      `json:"tokens"        jsonschema:"how many tokens were read; null without a token file"`
	Error        string    `json:"error"         jsonschema:"why it failed, for people; empty if it did not"`
	Mistakes     []Mistake `json:"mistakes"      jsonschema:"the mistakes in the file, each with its place"`
	NeedsRestart []string  `json:"needs_restart" jsonschema:"changed keys that only a restart puts in force; nothing else was changed either"`
}

// settings are what of the operator's files the gateway itself goes by. They are
// replaced as a whole.
type settings struct {
	roots       []string // real paths
	promptChars int
}

// errNoReload is the answer of a gateway that was not told how.
var errNoReload = rpc.Errorf(rpc.CodeUnavailable, "this gateway cannot read its configuration again: restart it")

// Reload puts the operator's files in force again, all or nothing. One at a time:
// another waits for it, as long as ctx lasts. Calls and turns on their way end
// with what they began with. What became of it is the result, is told to
// Options.OnReload, and is what the method status shows until the next one.
func (g *Gateway) Reload(ctx context.Context, cause ReloadCause, actor string) Reload {
	began := g.opts.Now()
	r := Reload{Cause: cause, Actor: actor, Changed: []string{}, Mistakes: []Mistake{}, NeedsRestart: []string{}}
	var err error
	select {
	case g.reloading <- struct{}{}:
		defer func() { <-g.reloading }()
		err = g.reload(ctx, &r)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.OK = err == nil
	if err != nil {
		r.Error, r.Changed = err.Error(), []string{}
		r.Mistakes = append(r.Mistakes, mistakesOf(err)...)
		if restart, ok := errors.AsType[*RestartError](err); ok {
			r.NeedsRestart = append(r.NeedsRestart, restart.Keys...)
		}
	}
	r.At = g.opts.Now().UTC()
	r.TookMS = float64(r.At.Sub(began)) / float64(time.Millisecond)
	g.lastReload.Store(&r)
	if g.opts.OnReload != nil {
		g.opts.OnReload(r)
	}
	return r
}

// reload does the work. Nothing is changed before Apply, and nothing fails behind it.
func (g *Gateway) reload(ctx context.Context, r *Reload) error {
	asked := false // the engine counts what it is asked for
	defer func() {
		if !asked {
			g.refused.Add(1)
		}
	}()
	if g.opts.Load == nil {
		return errNoReload
	}
	loaded, err := g.opts.Load(ctx)
	if loaded != nil {
		r.Config = loaded.Config
	}
	if err != nil {
		return err
	}
	roots, err := realRoots(loaded.Roots)
	if err != nil {
		return err
	}
	if loaded.Tokens != nil {
		if err := errors.Join(checkNames(loaded.Tokens), rpc.CheckTokens(loaded.Tokens)); err != nil {
			return err
		}
	}
	asked = true
	if err := loaded.Apply(ctx); err != nil {
		return err
	}
	g.settings.Store(&settings{roots, loaded.PromptChars})
	g.config.Store(&loaded.Config)
	r.Changed = append(r.Changed, loaded.Changed...)
	if loaded.Tokens != nil {
		n := len(loaded.Tokens)
		r.Tokens = &n
		return g.rpc.SetTokens(loaded.Tokens) // they were checked
	}
	return nil
}

// mistakesOf finds the mistakes with places in an error, in their order.
func mistakesOf(err error) []Mistake {
	if e, ok := err.(*config.Error); ok { //nolint:errorlint // the tree is walked here
		return []Mistake{{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Snippet: e.Snippet}}
	}
	var all []Mistake
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, mistakesOf(one)...)
		}
	case interface{ Unwrap() error }:
		all = mistakesOf(e.Unwrap())
	}
	return all
}

// errBound is the answer to a token that is bound to workspaces, where all of them
// are meant.
func errBound() error {
	return rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces, and this is about all of them")
}

func (g *Gateway) configMethods() []rpc.Method {
	return []rpc.Method{
		method("config/reload", rpc.AdminRight,
			"Reads configuration and tokens again and puts them in force, all or nothing. One that is refused is a result that says why.",
			(*anyone).asked,
			func(ctx context.Context, c call[anyone]) (Reload, error) {
				switch {
				case !c.AllWorkspaces():
					return Reload{}, errBound()
				case g.opts.Load == nil:
					return Reload{}, errNoReload
				}
				return g.Reload(ctx, ReloadCall, c.params.Actor), nil
			}),
	}
}
