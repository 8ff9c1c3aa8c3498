package tree

import (
	"context"
	"time"
)

// Store keeps trees. It is safe for concurrent use, by several processes on one
// database too. What it has returned is kept, as safely as its database promises.
//
// Errors are an *[Error] for what callers did, and for a database that is out of
// reach ([CodeUnavailable]); a context's own error is returned as it is, wrapped.
// A workspace, folder, thread or document that is not there, deleted ones
// included, is [CodeNotFound], and so is one of another workspace.
//
// Of several reasons to refuse, the first of these is told: parameters that make
// no sense in any tree (their Check methods, then [Normalize]), what is not there,
// what the tree does not allow (CodeInvalid, CodeCycle), a conflict. What is
// refused changes nothing. What would change nothing (a rename to the same name, a
// move to the same place) is no error, and no [Change] either.
//
// Times are UTC, and the same whenever something is read again.
type Store interface { //nolint:interfacebloat // the methods of one service, each of which clients call by name
	// CreateWorkspace, CreateFolder and CreateThread are idempotent by the caller's
	// id: the same again (the name and the place that it has by now) gives what is
	// there. An id that is taken by something else, or was by something that is
	// deleted, is CodeInvalid. Ids of folders are apart from those of threads, and
	// those of one workspace apart from those of another.
	CreateWorkspace(ctx context.Context, p CreateWorkspace) (Workspace, error)
	// Workspaces returns all that are not deleted, in the order of their ids; never
	// nil. Orders of ids are those of their bytes.
	Workspaces(ctx context.Context) ([]Workspace, error)
	RenameWorkspace(ctx context.Context, p RenameWorkspace) (Workspace, error)
	// DeleteWorkspace puts everything in a workspace out of reach as it is: it is one
	// change, and nothing in it becomes a version. What has folders, threads or a live
	// document and is deleted without Recursive is CodeInvalid, as for folders.
	DeleteWorkspace(ctx context.Context, p DeleteWorkspace) (Workspace, error)

	// CreateFolder refuses what would be deeper than MaxDepth (CodeInvalid).
	CreateFolder(ctx context.Context, p CreateFolder) (Folder, error)
	RenameFolder(ctx context.Context, p RenameFolder) (Folder, error)
	// MoveFolder refuses to put a folder into itself or below itself ([CodeCycle]),
	// and what would become deeper than MaxDepth, with what is below it (CodeInvalid).
	MoveFolder(ctx context.Context, p MoveFolder) (Folder, error)
	// DeleteFolder returns what the folder was. What is small goes at once. A large
	// subtree may go in pieces, the deepest folders first: every thread is in its folder
	// or at the parent throughout, and after an error the call can be made again.
	DeleteFolder(ctx context.Context, p DeleteFolder) (Folder, error)

	CreateThread(ctx context.Context, p CreateThread) (Thread, error)
	RenameThread(ctx context.Context, p RenameThread) (Thread, error)
	MoveThread(ctx context.Context, p MoveThread) (Thread, error)
	DeleteThread(ctx context.Context, p DeleteThread) (Thread, error)

	// Tree returns a page of the tree: one moment's. The pages together have each
	// folder and thread that is there all the while once, in the order of ids.
	Tree(ctx context.Context, q Query) (Page, error)

	// Doc returns a scope's document and the one in effect there.
	Doc(ctx context.Context, s Scope) (View, error)
	// Save judges what was expected before it looks whether the text is new: an
	// unchanged text with a stale version is a conflict.
	Save(ctx context.Context, p Save) (Saved, error)
	// Archive makes a version with the text as it was. Drafts can be archived too.
	Archive(ctx context.Context, p ArchiveDoc) (ArchivedNow, error)
	// Restore makes a version also where the text is the same.
	Restore(ctx context.Context, p RestoreDoc) (Doc, error)
	// Revisions and ArchivedDocs never return nil without an error.
	Revisions(ctx context.Context, q RevisionQuery) ([]Revision, error)
	ArchivedDocs(ctx context.Context, q ArchivedQuery) ([]ArchivedDoc, error)
	// Resolve returns the document in effect for a thread. A thread that is not
	// known counts as one at the root, and the answer says so.
	Resolve(ctx context.Context, t ThreadRef) (Resolution, error)

	// Changes returns what changed behind a place in the log of changes, of all
	// workspaces. It returns as many whole transactions as the limit of changes
	// allows, but at least one; a limit below 1 is [DefaultChanges].
	Changes(ctx context.Context, after Seq, limit int) (Changes, error)
	// Affected counts the folders, but for the scope itself, whose document in
	// effect is the scope's own active one; or would be, if it has none.
	Affected(ctx context.Context, s Scope) (int, error)
	// Listen calls wake, from one goroutine at a time: once as soon as it listens,
	// then soon after there are new changes, whoever made them; at times also without
	// any. Wake must return at once. It returns when ctx ends, with its error, or when
	// it cannot listen any more: then the caller begins again, and asks for Changes
	// itself meanwhile.
	Listen(ctx context.Context, wake func()) error

	// Thin takes old autosaves away: of revisions that were autosaved before now
	// less ThinAge, the last of each ThinStep of a document stays, and what is its
	// newest. Steps are counted from the Unix epoch; younger autosaves and other
	// reasons do not count. It also takes changes away that were made before now less
	// ChangesAge. It returns how many revisions it took.
	Thin(ctx context.Context, now time.Time) (int, error)
}

// Times of [Store.Thin].
const (
	// ThinAge is how long every autosave is kept.
	ThinAge = 30 * 24 * time.Hour
	// ThinStep is the time of which one autosave is kept after that.
	ThinStep = 10 * time.Minute
	// ChangesAge is how long the log of changes goes back.
	ChangesAge = 7 * 24 * time.Hour
)

// DefaultChanges is how many changes [Store.Changes] returns without a limit.
const DefaultChanges = 1_000

// Page is a part of a tree, or all of it. The lists are never nil.
type Page struct {
	// Folders and Threads are in the order of their ids.
	Folders []Folder `json:"folders"`
	Threads []Thread `json:"threads"`
	// AgentsDocs are the live documents of the page's folders; on the first page
	// also that of the scope that was asked for. Their order means nothing.
	AgentsDocs []Summary `json:"agents_docs"`
	// NextCursor asks for the next page; nil at the end.
	NextCursor *string `json:"next_cursor"`
}

// MaxPage is how many folders and threads together a page has at most.
const MaxPage = 10_000

// View is what a scope has, and what holds there.
type View struct {
	// Explicit is the scope's own live document, drafts included; nil for none.
	Explicit *Doc `json:"explicit"`
	// Effective is nil where no document is in effect.
	Effective *Effective `json:"effective"`
}

// Saved is a saved document.
type Saved struct {
	Doc Doc `json:"doc"`
	// Unchanged says that the text was there already: no version was made.
	Unchanged bool `json:"unchanged"`
}

// ArchivedNow says what archiving did.
type ArchivedNow struct {
	// Archived is false where there was nothing to archive.
	Archived bool `json:"archived"`
	// Doc is the archived document, nil for none; Effective what holds now.
	Doc       *Doc       `json:"doc"`
	Effective *Effective `json:"effective"`
}

// Resolution is the document in effect for a thread.
type Resolution struct {
	// Effective is nil for none.
	Effective *Effective
	// Known says that the thread is in the tree.
	Known bool
}
