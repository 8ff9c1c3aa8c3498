package main

import (
	"context"
	"errors"
	"sync"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/treestore"
)

// recorder keeps the manifest of a compiled turn, and remembers what became of
// it. A nil recorder keeps nothing.
type recorder struct {
	ref  storeRef
	sink runtime.Sink
	// state is the store too; nil where it could not be opened.
	state runtime.State
	// documents are the thread tree's in the same store; nil likewise.
	documents *treestore.Store
	// store is what was opened; nil where it could not be.
	store *store.Store
	// must is on_failure: refuse.
	must bool

	mu sync.Mutex
	// lost says why the manifest was not kept.
	lost string
}

// openRecorder opens the store that a turn is recorded in; nil without one. A
// store that cannot be opened refuses its manifests one by one: what follows
// from that is the operator's choice, and the engine's work. Where the turn would
// be refused anyway, it does not even begin.
func (a *app) openRecorder(ctx context.Context, cfg *config.Config, from origin) (*recorder, error) {
	ref := a.storeNamed(cfg, from)
	if ref.dsn == "" {
		return nil, nil
	}
	r := &recorder{ref: ref, must: cfg.Manifest.OnFailure == "refuse"}
	s, err := openStore(ctx, ref, cfg, store.Options{})
	switch {
	case err == nil:
		r.sink, r.state, r.store = s, s, s
		if r.documents, err = treestore.New(ctx, s.DB(), treestore.Options{}); err != nil {
			return nil, errors.Join(storeError(err), r.close())
		}
	case r.must || codeOf(storeError(err)) == exitUsage:
		return nil, storeError(err)
	default:
		r.sink = lostSink{err}
	}
	return r, nil
}

// wire hands the engine the sink and listens to what becomes of the manifest.
func (r *recorder) wire(o *runtime.Options) {
	if r == nil {
		return
	}
	o.State = r.state
	if r.documents != nil {
		o.Services = map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(r.documents)}
	}
	o.Sink, o.OnEvent = r.sink, func(ev runtime.Event) {
		if ev.Kind == runtime.EventManifest && ev.State == "not_kept" {
			r.mu.Lock()
			r.lost = ev.Detail
			r.mu.Unlock()
		}
	}
}

// close ends the store. What was appended is kept by then.
func (r *recorder) close() error {
	if r == nil || r.store == nil {
		return nil
	}
	var closed error
	if r.documents != nil {
		closed = r.documents.Close()
	}
	return errors.Join(closed, r.store.Close())
}

// whyLost says why the manifest was not kept; empty where it was, and where it
// did not have to be.
func (r *recorder) whyLost() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// refused reports whether there is no prompt because the manifest was not kept.
func (r *recorder) refused() bool { return r.whyLost() != "" && r.must }

// lostSink stands for a store that cannot be opened.
type lostSink struct{ err error }

var (
	_ runtime.Sink      = lostSink{}
	_ runtime.AuditSink = lostSink{}
)

// KeepAudits refuses the events.
func (s lostSink) KeepAudits(context.Context, []manifest.AuditEvent) error { return s.err }

// Append refuses the manifest.
func (s lostSink) Append(context.Context, *manifest.Manifest, []manifest.Text) error { return s.err }

// Last knows of none. That it could not be read is told once, by Append.
func (lostSink) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil }

// Report is never called: a command line has no provider.
func (s lostSink) Report(context.Context, manifest.Usage) error { return s.err }
