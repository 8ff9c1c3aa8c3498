package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// Tree is the tree of a gateway. It gives the answers of the store behind it, the
// gateway's checks and rights before them; an error is what [tree.Store] promises
// where the gateway's has a code of package tree, an [Error] where it has another,
// and CodeUnavailable where there was no answer.
//
// What the wire does not have (Changes, Affected, Listen, Thin) is refused with
// CodeInvalid: workspace/watch and Options.OnNotification tell what changes.
type Tree struct {
	caller Caller
}

var _ tree.Store = (*Tree)(nil)

// NewTree makes the tree of whatever c calls.
func NewTree(c Caller) *Tree { return &Tree{c} }

// CreateWorkspace implements tree.Store.
func (t *Tree) CreateWorkspace(ctx context.Context, p tree.CreateWorkspace) (tree.Workspace, error) {
	r, err := ask[workspace](ctx, t, "workspace/create", p)
	return r.Workspace, err
}

// Workspaces implements tree.Store. It returns those that the caller may see.
func (t *Tree) Workspaces(ctx context.Context) ([]tree.Workspace, error) {
	r, err := ask[struct {
		Workspaces []tree.Workspace `json:"workspaces"`
	}](ctx, t, "workspace/list", nil)
	return r.Workspaces, err
}

// RenameWorkspace implements tree.Store.
func (t *Tree) RenameWorkspace(ctx context.Context, p tree.RenameWorkspace) (tree.Workspace, error) {
	r, err := ask[workspace](ctx, t, "workspace/rename", p)
	return r.Workspace, err
}

// DeleteWorkspace implements tree.Store.
func (t *Tree) DeleteWorkspace(ctx context.Context, p tree.DeleteWorkspace) (tree.Workspace, error) {
	r, err := ask[workspace](ctx, t, "workspace/delete", p)
	return r.Workspace, err
}

// CreateFolder implements tree.Store.
func (t *Tree) CreateFolder(ctx context.Context, p tree.CreateFolder) (tree.Folder, error) {
	r, err := ask[folder](ctx, t, "folder/create", p)
	return r.Folder, err
}

// RenameFolder implements tree.Store.
func (t *Tree) RenameFolder(ctx context.Context, p tree.RenameFolder) (tree.Folder, error) {
	r, err := ask[folder](ctx, t, "folder/rename", p)
	return r.Folder, err
}

// MoveFolder implements tree.Store.
func (t *Tree) MoveFolder(ctx context.Context, p tree.MoveFolder) (tree.Folder, error) {
	r, err := ask[folder](ctx, t, "folder/move", p)
	return r.Folder, err
}

// DeleteFolder implements tree.Store.
func (t *Tree) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (tree.Folder, error) {
	r, err := ask[folder](ctx, t, "folder/delete", p)
	return r.Folder, err
}

// CreateThread implements tree.Store.
func (t *Tree) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	r, err := ask[thread](ctx, t, "thread/create", p)
	return r.Thread, err
}

// RenameThread implements tree.Store.
func (t *Tree) RenameThread(ctx context.Context, p tree.RenameThread) (tree.Thread, error) {
	r, err := ask[thread](ctx, t, "thread/rename", p)
	return r.Thread, err
}

// MoveThread implements tree.Store.
func (t *Tree) MoveThread(ctx context.Context, p tree.MoveThread) (tree.Thread, error) {
	r, err := ask[thread](ctx, t, "thread/move", p)
	return r.Thread, err
}

// DeleteThread implements tree.Store.
func (t *Tree) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	r, err := ask[thread](ctx, t, "thread/delete", p)
	return r.Thread, err
}

// Tree implements tree.Store.
func (t *Tree) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	return ask[tree.Page](ctx, t, "thread/tree", q)
}

// Doc implements tree.Store.
func (t *Tree) Doc(ctx context.Context, s tree.Scope) (tree.View, error) {
	return ask[tree.View](ctx, t, "thread/agents_doc/get", s)
}

// Save implements tree.Store. Warnings of the gateway are left out.
func (t *Tree) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	return ask[tree.Saved](ctx, t, "thread/agents_doc/save", p)
}

// Archive implements tree.Store.
func (t *Tree) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	return ask[tree.ArchivedNow](ctx, t, "thread/agents_doc/archive", p)
}

// Restore implements tree.Store.
func (t *Tree) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	r, err := ask[struct {
		Doc tree.Doc `json:"doc"`
	}](ctx, t, "thread/agents_doc/restore", p)
	return r.Doc, err
}

// Revisions implements tree.Store.
func (t *Tree) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	r, err := ask[struct {
		Revisions []tree.Revision `json:"revisions"`
	}](ctx, t, "thread/agents_doc/revisions", q)
	return r.Revisions, err
}

// ArchivedDocs implements tree.Store.
func (t *Tree) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	r, err := ask[struct {
		Archived []tree.ArchivedDoc `json:"archived"`
	}](ctx, t, "thread/agents_doc/archived", q)
	return r.Archived, err
}

// Resolve implements tree.Store. The gateway has no answer for a thread that is
// not known: then the root is asked.
func (t *Tree) Resolve(ctx context.Context, ref tree.ThreadRef) (tree.Resolution, error) {
	r, err := ask[struct {
		Effective *tree.Effective `json:"effective"`
	}](ctx, t, "thread/agents_doc/resolve_for_thread", ref)
	if !tree.HasCode(err, tree.CodeNotFound) {
		return tree.Resolution{Effective: r.Effective, Known: err == nil}, err
	}
	root, err := t.Doc(ctx, tree.Scope{WorkspaceID: ref.WorkspaceID})
	return tree.Resolution{Effective: root.Effective}, err
}

// Changes implements tree.Store; the wire does not have it.
func (t *Tree) Changes(context.Context, tree.Seq, int) (tree.Changes, error) {
	return tree.Changes{}, notOnWire("Changes")
}

// Affected implements tree.Store; the wire does not have it.
func (t *Tree) Affected(context.Context, tree.Scope) (int, error) { return 0, notOnWire("Affected") }

// Listen implements tree.Store; the wire does not have it.
func (t *Tree) Listen(context.Context, func()) error { return notOnWire("Listen") }

// Thin implements tree.Store; the wire does not have it.
func (t *Tree) Thin(context.Context, time.Time) (int, error) { return 0, notOnWire("Thin") }

func notOnWire(method string) error {
	return tree.Errorf(tree.CodeInvalid, "%s is not offered over RPC: watch the workspace, or ask the store itself", method)
}

// Results with one member.
type (
	workspace struct {
		Workspace tree.Workspace `json:"workspace"`
	}
	folder struct {
		Folder tree.Folder `json:"folder"`
	}
	thread struct {
		Thread tree.Thread `json:"thread"`
	}
)

// ask calls a method.
func ask[R any](ctx context.Context, t *Tree, method string, params any) (R, error) {
	var r R
	if err := t.caller.Call(ctx, method, params, &r); err != nil {
		var none R
		return none, treeError(ctx, err)
	}
	return r, nil
}

// treeError makes an error what package tree says it is.
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
