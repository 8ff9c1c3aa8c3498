package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/internal/tree"
)

// NewTree returns the tree of the gateway that c calls, within the caller's rights. Its errors
// are those of [tree.Store], an [Error] if the gateway's code is not one of package tree, and
// CodeUnavailable without an answer. Save omits the gateway's warnings.
//
// Changes, Affected, Listen and Thin are refused with CodeInvalid: workspace/watch and
// Options.OnNotification report changes.
func NewTree(c Caller) tree.Store { return &remoteTree{c} }

type remoteTree struct{ caller Caller }

func (t *remoteTree) CreateWorkspace(ctx context.Context, p tree.CreateWorkspace) (tree.Workspace, error) {
	return askFor[tree.Workspace](ctx, t, "workspace/create", "workspace", p)
}

func (t *remoteTree) Workspaces(ctx context.Context) ([]tree.Workspace, error) {
	return askFor[[]tree.Workspace](ctx, t, "workspace/list", "workspaces", nil)
}

func (t *remoteTree) RenameWorkspace(ctx context.Context, p tree.RenameWorkspace) (tree.Workspace, error) {
	return askFor[tree.Workspace](ctx, t, "workspace/rename", "workspace", p)
}

func (t *remoteTree) DeleteWorkspace(ctx context.Context, p tree.DeleteWorkspace) (tree.Workspace, error) {
	return askFor[tree.Workspace](ctx, t, "workspace/delete", "workspace", p)
}

func (t *remoteTree) CreateFolder(ctx context.Context, p tree.CreateFolder) (tree.Folder, error) {
	return askFor[tree.Folder](ctx, t, "folder/create", "folder", p)
}

func (t *remoteTree) RenameFolder(ctx context.Context, p tree.RenameFolder) (tree.Folder, error) {
	return askFor[tree.Folder](ctx, t, "folder/rename", "folder", p)
}

func (t *remoteTree) MoveFolder(ctx context.Context, p tree.MoveFolder) (tree.Folder, error) {
	return askFor[tree.Folder](ctx, t, "folder/move", "folder", p)
}

func (t *remoteTree) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (tree.Folder, error) {
	return askFor[tree.Folder](ctx, t, "folder/delete", "folder", p)
}

func (t *remoteTree) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	return askFor[tree.Thread](ctx, t, "thread/create", "thread", p)
}

func (t *remoteTree) RenameThread(ctx context.Context, p tree.RenameThread) (tree.Thread, error) {
	return askFor[tree.Thread](ctx, t, "thread/rename", "thread", p)
}

func (t *remoteTree) MoveThread(ctx context.Context, p tree.MoveThread) (tree.Thread, error) {
	return askFor[tree.Thread](ctx, t, "thread/move", "thread", p)
}

func (t *remoteTree) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	return askFor[tree.Thread](ctx, t, "thread/delete", "thread", p)
}

func (t *remoteTree) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	return ask[tree.Page](ctx, t, "thread/tree", q)
}

func (t *remoteTree) Doc(ctx context.Context, s tree.Scope) (tree.View, error) {
	return ask[tree.View](ctx, t, "thread/agents_doc/get", s)
}

func (t *remoteTree) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	return ask[tree.Saved](ctx, t, "thread/agents_doc/save", p)
}

func (t *remoteTree) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	return ask[tree.ArchivedNow](ctx, t, "thread/agents_doc/archive", p)
}

func (t *remoteTree) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	return askFor[tree.Doc](ctx, t, "thread/agents_doc/restore", "doc", p)
}

func (t *remoteTree) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	return askFor[[]tree.Revision](ctx, t, "thread/agents_doc/revisions", "revisions", q)
}

func (t *remoteTree) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	return askFor[[]tree.ArchivedDoc](ctx, t, "thread/agents_doc/archived", "archived", q)
}

// Resolve implements tree.Store. An unknown thread resolves as the root.
func (t *remoteTree) Resolve(ctx context.Context, ref tree.ThreadRef) (tree.Resolution, error) {
	r, err := ask[struct {
		Effective *tree.Effective `json:"effective"`
	}](ctx, t, "thread/agents_doc/resolve_for_thread", ref)
	if !tree.HasCode(err, tree.CodeNotFound) {
		return tree.Resolution{Effective: r.Effective, Known: err == nil}, err
	}
	root, err := t.Doc(ctx, tree.Scope{WorkspaceID: ref.WorkspaceID})
	return tree.Resolution{Effective: root.Effective}, err
}

func (t *remoteTree) Changes(context.Context, tree.Seq, int) (tree.Changes, error) {
	return tree.Changes{}, notOnWire("Changes")
}

func (t *remoteTree) Affected(context.Context, tree.Scope) (int, error) {
	return 0, notOnWire("Affected")
}

func (t *remoteTree) Listen(context.Context, func()) error { return notOnWire("Listen") }

func (t *remoteTree) Thin(context.Context, time.Time) (int, error) { return 0, notOnWire("Thin") }

func notOnWire(method string) error {
	return tree.Errorf(tree.CodeInvalid, "%s is not offered over RPC: watch the workspace, or ask the store itself", method)
}

func ask[R any](ctx context.Context, t *remoteTree, method string, params any) (R, error) {
	var r R
	if err := t.caller.Call(ctx, method, params, &r); err != nil {
		var none R
		return none, treeError(ctx, err)
	}
	return r, nil
}

// askFor is ask for a result with one member.
func askFor[T any](ctx context.Context, t *remoteTree, method, member string, params any) (T, error) {
	r, err := ask[map[string]T](ctx, t, method, params)
	return r[member], err
}

// treeError turns an error into what package tree promises.
func treeError(ctx context.Context, err error) error {
	if errors.Is(err, ErrLost) && ctx.Err() == nil {
		return &tree.Error{Code: tree.CodeUnavailable, Message: "the gateway is out of reach", Err: err}
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	out := &tree.Error{Code: tree.Code(e.Code), Message: e.Message}
	switch out.Code {
	case tree.CodeInvalid, tree.CodeTooLarge, tree.CodeCycle, tree.CodeNotFound, tree.CodeUnavailable:
		return out
	case tree.CodeConflict:
		out.Conflict = new(tree.Conflict)
		if bad := json.Unmarshal(e.Data, out.Conflict); bad != nil {
			return err
		}
		return out
	default:
		return err
	}
}
