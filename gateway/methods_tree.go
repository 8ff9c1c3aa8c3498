package gateway

import (
	"context"
	"slices"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/tree"
)

// The results of methods about workspaces, folders and threads. Deleting one gives
// what it was.
type (
	workspaceResult struct {
		Workspace tree.Workspace `json:"workspace"`
	}
	workspacesResult struct {
		Workspaces []tree.Workspace `json:"workspaces"`
	}
	folderResult struct {
		Folder tree.Folder `json:"folder"`
	}
	threadResult struct {
		Thread tree.Thread `json:"thread"`
	}
)

func (g *Gateway) workspaceMethods() []rpc.Method {
	t := g.opts.Tree
	return []rpc.Method{
		method("workspace/create", rpc.WriteRight,
			"Makes a workspace. The same again, with an id of the caller's, gives what is there. A token that is bound to workspaces may only make those.",
			func(p *tree.CreateWorkspace) asked { return asked{nil, &p.Actor} }, g.createWorkspace),
		method("workspace/list", rpc.ReadRight, "Lists the workspaces that the caller may see.", (*anyone).asked, g.listWorkspaces),
		quick("workspace/rename", rpc.WriteRight, "Gives a workspace another name.",
			func(p *tree.RenameWorkspace) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.RenameWorkspace) (workspaceResult, error) {
				w, err := t.RenameWorkspace(ctx, p)
				return workspaceResult{w}, err
			}),
		quick("workspace/delete", rpc.WriteRight, "Puts a workspace away. One that is not empty needs recursive.",
			func(p *tree.DeleteWorkspace) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.DeleteWorkspace) (workspaceResult, error) {
				w, err := t.DeleteWorkspace(ctx, p)
				return workspaceResult{w}, err
			}),
		method("workspace/watch", rpc.ReadRight,
			"Tells this connection from now on what changes in a workspace; with since_seq first what has changed since then, which may come before the answer. Gap says that not all of that can be told: read again.",
			func(p *watchParams) asked { return asked{&p.WorkspaceID, &p.Actor} }, g.watch),
		method("workspace/unwatch", rpc.ReadRight, "Ends that. The seq is where watching can go on later.",
			func(p *unwatchParams) asked { return asked{&p.WorkspaceID, &p.Actor} }, g.unwatch),
	}
}

// createWorkspace: a token that sees some workspaces only makes one of those, or
// it could not see what it has made.
func (g *Gateway) createWorkspace(ctx context.Context, c call[tree.CreateWorkspace]) (workspaceResult, error) {
	if !c.AllWorkspaces() && !c.MayWorkspace(c.params.ID) {
		return workspaceResult{}, rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces: it may make those, by their id, and no others")
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	w, err := g.opts.Tree.CreateWorkspace(ctx, c.params)
	return workspaceResult{w}, err
}

func (g *Gateway) listWorkspaces(ctx context.Context, c call[anyone]) (workspacesResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := g.opts.Tree.Workspaces(ctx)
	if err != nil {
		return workspacesResult{}, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(w tree.Workspace) bool { return !c.MayWorkspace(w.ID) })
	return workspacesResult{append([]tree.Workspace{}, list...)}, nil
}

func (g *Gateway) folderMethods() []rpc.Method {
	t := g.opts.Tree
	return []rpc.Method{
		quick("folder/create", rpc.WriteRight, "Makes a folder. The same again, with an id of the caller's, gives what is there.",
			func(p *tree.CreateFolder) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.CreateFolder) (folderResult, error) {
				f, err := t.CreateFolder(ctx, p)
				return folderResult{f}, err
			}),
		quick("folder/rename", rpc.WriteRight, "Gives a folder another name.",
			func(p *tree.RenameFolder) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.RenameFolder) (folderResult, error) {
				f, err := t.RenameFolder(ctx, p)
				return folderResult{f}, err
			}),
		quick("folder/move", rpc.WriteRight, "Gives a folder another parent; null is the root. Not one below itself.",
			func(p *tree.MoveFolder) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.MoveFolder) (folderResult, error) {
				f, err := t.MoveFolder(ctx, p)
				return folderResult{f}, err
			}),
		quick("folder/delete", rpc.WriteRight,
			"Puts a folder away. One that is not empty needs recursive: folders below go too, documents are archived, threads move to the parent.",
			func(p *tree.DeleteFolder) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.DeleteFolder) (folderResult, error) {
				f, err := t.DeleteFolder(ctx, p)
				return folderResult{f}, err
			}),
	}
}

// pageBytes is what a full page of the tree takes: 10,000 rows and their JSON.
const pageBytes = 4 << 20

// treeParams are those of thread/tree.
type treeParams struct {
	tree.Query

	Actor string `json:"actor,omitempty"`
}

func (g *Gateway) threadMethods() []rpc.Method {
	t := g.opts.Tree
	return []rpc.Method{
		quick("thread/create", rpc.WriteRight, "Makes a thread. The same again, with an id of the caller's, gives what is there.",
			func(p *tree.CreateThread) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.CreateThread) (threadResult, error) {
				made, err := t.CreateThread(ctx, p)
				return threadResult{made}, err
			}),
		quick("thread/rename", rpc.WriteRight, "Gives a thread another title.",
			func(p *tree.RenameThread) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.RenameThread) (threadResult, error) {
				renamed, err := t.RenameThread(ctx, p)
				return threadResult{renamed}, err
			}),
		quick("thread/move", rpc.WriteRight, "Places a thread in another folder; null is the root.",
			func(p *tree.MoveThread) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.MoveThread) (threadResult, error) {
				moved, err := t.MoveThread(ctx, p)
				return threadResult{moved}, err
			}),
		quick("thread/delete", rpc.WriteRight, "Takes a thread out of the tree.",
			func(p *tree.DeleteThread) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p tree.DeleteThread) (threadResult, error) {
				gone, err := t.DeleteThread(ctx, p)
				return threadResult{gone}, err
			}),
		quick("thread/tree", rpc.ReadRight, "Reads the tree, or what is below a folder: folders, threads and summaries of documents, drafts included, never their text.",
			func(p *treeParams) asked { return asked{&p.WorkspaceID, &p.Actor} },
			func(ctx context.Context, p treeParams) (tree.Page, error) {
				if err := rpc.Expect(ctx, pageBytes); err != nil {
					return tree.Page{}, err
				}
				return t.Tree(ctx, p.Query)
			}),
	}
}
