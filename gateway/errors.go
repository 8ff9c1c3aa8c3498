package gateway

import (
	"context"
	"errors"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/tree"
)

// wireError makes of a failure what clients may see of it. What it does not know
// stays as it is: rpc logs it, and the client learns that there was something.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*tree.Error](err); ok {
		return treeError(e)
	}
	if e, ok := errors.AsType[*store.Error](err); ok {
		return storeError(e)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "it took too long; try again", Err: err}
	case errors.Is(err, context.Canceled):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "it was given up, because the gateway stops or the caller went away", Err: err}
	case errors.Is(err, runtime.ErrClosed):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the engine is closed: the gateway stops", Err: err}
	case errors.Is(err, manifest.ErrKeyNeeded):
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "it cannot be told: the log is keyed, and the gateway has no key; see manifest.chain_key and manifest.fingerprint_key in its configuration", Err: err}
	default:
		return err
	}
}

// treeError keeps the code: the vocabularies are the same.
func treeError(e *tree.Error) *rpc.Error {
	out := &rpc.Error{Code: string(e.Code), Message: e.Message, Err: e.Err}
	if e.Code == tree.CodeUnavailable {
		out.Message = "the database is out of reach; try again" // its own words are for operators
		out.Err = e
	}
	if c := e.Conflict; c != nil {
		out.Data = map[string]any{
			"expected_version": c.ExpectedVersion, "actual_version": c.ActualVersion, "actual_doc_id": c.ActualDocID,
			"actual_content_sha256": c.ActualContentSHA256, "updated_by": c.UpdatedBy, "updated_at": c.UpdatedAt,
		}
	}
	return out
}

// storeError says what a client can do about a failure of the log.
func storeError(e *store.Error) error {
	switch e.Code {
	case store.CodeNotFound:
		return &rpc.Error{Code: rpc.CodeNotFound, Message: "there is no such manifest", Err: e}
	case store.CodeAmbiguous:
		return &rpc.Error{Code: rpc.CodeInvalid, Message: e.Message, Err: e}
	case store.CodeKey:
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the log is keyed, and the gateway has no key", Err: e}
	case store.CodeLocked, store.CodeFull, store.CodePermission, store.CodeUnreachable:
		return &rpc.Error{Code: rpc.CodeUnavailable, Message: "the log is out of reach; try again", Err: e}
	default:
		return e
	}
}

// engineError is for a phase that was not even begun: the outcome says the rest.
func engineError(err error) error {
	if e, ok := errors.AsType[*phases.Error](err); ok {
		switch e.Code {
		case phases.CauseTurnNeeded:
			return &rpc.Error{Code: rpc.CodeTurnNeeded, Message: e.Error() + ": call turn/begin, then turn/compile or turn/dispatch", Err: err}
		case phases.CauseOversizeRequest, phases.CauseBudgetExhausted:
			return &rpc.Error{Code: rpc.CodeTooLarge, Message: e.Message, Err: err}
		default:
			return &rpc.Error{Code: rpc.CodeInvalid, Message: e.Error(), Err: err}
		}
	}
	return wireError(err)
}

// The answers to who asks for what is not theirs are those to who asks for what is
// not there.

func noWorkspace(id string) error {
	if id == "" {
		return rpc.Errorf(rpc.CodeInvalid, "workspace_id: it is missing")
	}
	return rpc.Errorf(rpc.CodeNotFound, "there is no workspace %q", id)
}

func noManifest() error { return rpc.Errorf(rpc.CodeNotFound, "there is no such manifest") }
