package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// ServiceDocuments names the host service of [Documents] in grants.
const ServiceDocuments = "documents"

const codeThreadUnknown = "thread_unknown"

type documentQuery struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
}

type documentAnswer struct {
	Effective   *tree.Effective      `json:"effective"`
	Diagnostics []documentDiagnostic `json:"diagnostics"`
}

type documentDiagnostic struct {
	Code     string          `json:"code"`
	Severity phases.Severity `json:"severity"`
	Message  string          `json:"message"`
}

// Documents is the host service "documents": a plugin with the grant reads the document in effect for its thread,
// without access to a database. With a nil tree (a host without one) its calls fail.
func Documents(t tree.Store) runtime.Service {
	return runtime.Service{"resolve_for_thread": {
		Doc: "Finds the AGENTS.md document in effect for a thread: the context's, unless params name another one of the same workspace.",
		Params: json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {
			"workspace_id": {"type": "string", "description": "the context's; another one is refused"},
			"thread_id": {"type": "string", "description": "absent: the context's conversation"}}}`),
		Result: json.RawMessage(`{"type": "object", "required": ["effective", "diagnostics"], "properties": {
			"effective": {"type": ["object", "null"], "description": "doc, source_folder_id, source_path, inherited, resolved_for_folder_id, resolved_at"},
			"diagnostics": {"type": "array", "items": {"type": "object", "required": ["code", "severity", "message"]}}}}`),
		Call: func(ctx context.Context, caller runtime.Caller, params json.RawMessage) (json.RawMessage, error) {
			ref, err := threadOf(caller.Context, params)
			if err != nil {
				return nil, err
			}
			answer, err := resolveFor(ctx, t, ref)
			if err != nil {
				return nil, err
			}
			return json.Marshal(answer)
		},
	}}
}

// threadOf is the thread that a plugin asks about. Other workspaces are refused.
func threadOf(c phases.Context, params json.RawMessage) (tree.ThreadRef, error) {
	var q documentQuery
	if len(params) > 0 {
		if err := json.Unmarshal(params, &q); err != nil {
			return tree.ThreadRef{}, phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
		}
	}
	if q.WorkspaceID != "" && q.WorkspaceID != c.WorkspaceID {
		return tree.ThreadRef{}, phases.Errorf(phases.CauseForbidden, "the workspace %q is not the context's", q.WorkspaceID)
	}
	ref := tree.ThreadRef{WorkspaceID: c.WorkspaceID, ThreadID: cmp.Or(q.ThreadID, c.Conversation())}
	switch {
	case ref.WorkspaceID == "":
		return ref, phases.Errorf(phases.CauseInvalidReply, "the context has no workspace_id: documents belong to a workspace")
	case ref.ThreadID == "":
		return ref, phases.Errorf(phases.CauseInvalidReply, "neither the params nor the context name a thread")
	}
	return ref, nil
}

// resolveFor counts an unknown thread as one at the root: hosts have threads that nobody has
// placed, ids that a tree would refuse, and workspaces without a tree.
func resolveFor(ctx context.Context, t tree.Store, ref tree.ThreadRef) (documentAnswer, error) {
	answer := documentAnswer{Diagnostics: []documentDiagnostic{}}
	if t == nil {
		return answer, phases.Errorf(phases.CauseUnavailable, "there is no store with documents; name one with --store or store:")
	}
	found, err := resolveOrRoot(ctx, t, ref)
	switch {
	case tree.HasCode(err, tree.CodeNotFound), tree.HasCode(err, tree.CodeInvalid):
		answer.unknown(fmt.Sprintf("there is no tree for the workspace %q", ref.WorkspaceID))
	case tree.HasCode(err, tree.CodeUnavailable):
		return answer, phases.Errorf(phases.CauseUnavailable, "documents are out of reach: %w", err)
	case err != nil:
		return answer, err
	default:
		if answer.Effective = found.Effective; !found.Known {
			answer.unknown(fmt.Sprintf("the thread %q is in no tree; it counts as one at the root", ref.ThreadID))
		}
	}
	return answer, nil
}

func resolveOrRoot(ctx context.Context, t tree.Store, ref tree.ThreadRef) (tree.Resolution, error) {
	if tree.CheckID("thread_id", ref.ThreadID) == nil {
		return t.Resolve(ctx, ref)
	}
	root, err := t.Doc(ctx, tree.Scope{WorkspaceID: ref.WorkspaceID})
	return tree.Resolution{Effective: root.Effective}, err
}

func (a *documentAnswer) unknown(message string) {
	a.Diagnostics = append(a.Diagnostics, documentDiagnostic{codeThreadUnknown, phases.SeverityInfo, message})
}
