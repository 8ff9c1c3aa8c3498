package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// ReloadCause is what triggered a reload.
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

// Loaded is the content of the operator's files. Reading them has changed nothing.
type Loaded struct {
	// Config says where the configuration was read.
	Config string
	// Roots and PromptChars are those of Options.
	Roots       []string
	PromptChars int
	// Tokens replace those in force. Nil keeps them, so that a reload never opens or closes a gateway.
	Tokens []rpc.Token
	// Changed lists the changed keys, for people.
	Changed []string
	// Apply puts in force what is not the gateway's. It is called once, last; if it fails, it
	// must have changed nothing.
	Apply func(ctx context.Context) error

	_ struct{}
}

// RestartError refuses files with changed settings that need a restart.
type RestartError struct {
	// Keys are those settings.
	Keys []string
	// Err has the mistakes with their places.
	Err error
}

// Error implements error.
func (e *RestartError) Error() string { return e.Err.Error() }

// Unwrap returns the mistakes with their places.
func (e *RestartError) Unwrap() error { return e.Err }

// Mistake is a mistake in a file.
type Mistake struct {
	File string `json:"file"`
	// Line and Column count from 1; both are 0 for a mistake without a place.
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	// Snippet is the line with a caret below; empty without a place.
	Snippet string `json:"snippet"`
}

// Reload is one attempt to put the operator's files in force again.
type Reload struct {
	At           time.Time   `json:"at"            jsonschema:"when it ended"`
	TookMS       float64     `json:"took_ms"`
	Cause        ReloadCause `json:"cause"         jsonschema:"signal is SIGHUP, watch a file that has changed, call the method config/reload"`
	Actor        string      `json:"actor"         jsonschema:"who called; empty for the other causes"`
	OK           bool        `json:"ok"            jsonschema:"false: nothing was changed, for the reason in error"`
	Config       string      `json:"config"        jsonschema:"the file of the configuration; empty if it is unknown"`
	Changed      []string    `json:"changed"       jsonschema:"changed keys"`
	Tokens       *int        `json:"tokens"        jsonschema:"how many tokens were read; null without a token file"`
	Error        string      `json:"error"         jsonschema:"why it failed, for people; empty if it did not"`
	Mistakes     []Mistake   `json:"mistakes"      jsonschema:"the mistakes in the file, each with its place"`
	NeedsRestart []string    `json:"needs_restart" jsonschema:"changed keys that only a restart puts in force; nothing else was changed either"`
}

// settings are what the gateway takes from the operator's files, replaced as a whole.
type settings struct {
	roots       []string // real paths
	promptChars int
}

var errNoReload = rpc.Errorf(rpc.CodeUnavailable, "this gateway cannot read its configuration again: restart it")

// Reload puts the operator's files in force again, all or nothing. Reloads run one at a time while ctx lasts. Calls
// and turns in flight keep what they began with. The result also goes to Options.OnReload and into the status.
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
		r.Mistakes = append(r.Mistakes, Mistakes(err)...)
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

// reload changes nothing before Apply, and nothing fails after it.
func (g *Gateway) reload(ctx context.Context, r *Reload) error {
	applied := false // the engine counts the others
	defer func() {
		if !applied {
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
	applied = true
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

// Mistakes are those of [config.Mistakes].
func Mistakes(err error) (all []Mistake) {
	for _, e := range config.Mistakes(err) {
		all = append(all, Mistake{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Snippet: e.Snippet})
	}
	return all
}

// realRoots are the real paths of existing directories.
func realRoots(roots []string) ([]string, error) {
	var all []string
	for _, root := range roots {
		if !filepath.IsAbs(root) {
			return nil, fmt.Errorf("gateway: the root %q is not an absolute path", root)
		}
		path, err := realDir(root)
		if err != nil {
			return nil, fmt.Errorf("gateway: the root %q: %w", root, err)
		}
		all = append(all, path)
	}
	return all, nil
}

// inRoots returns the real path of a directory in one of the roots, and the widest root that
// contains it. Plugins open files beneath the root, as the directory can be replaced by a link
// later. Missing and forbidden directories give the same error, to reveal nothing of the disk.
func (g *Gateway) inRoots(dir string) (path, root string, err error) {
	if dir == "" {
		return "", "", nil
	}
	roots := g.settings.Load().roots
	if len(roots) == 0 {
		return "", "", errors.New("this gateway has no roots, and takes no dir; see serve.roots in its configuration")
	}
	if !filepath.IsAbs(dir) {
		return "", "", fmt.Errorf("%q is not an absolute path", dir)
	}
	if path, err = realDir(dir); err == nil {
		for _, r := range roots {
			if below(path, r) && (root == "" || len(r) < len(root)) {
				root = r
			}
		}
	}
	if root == "" {
		return "", "", fmt.Errorf("%q is not a directory in the gateway's roots", dir)
	}
	return path, root, nil
}

func realDir(dir string) (string, error) {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", errors.New("it is not a directory")
	}
	return path, nil
}

func below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}
