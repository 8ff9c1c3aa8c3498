package tree

import (
	"context"
	"time"
)

// Store keeps trees. It is safe for concurrent use, by several processes on one database too. Returned changes are
// kept, as safely as the database promises.
//
// Errors are an *[Error] for callers' mistakes and for a database that cannot be reached ([CodeUnavailable]); a
// context's own error is wrapped. Whatever is missing, deleted, or in another workspace is [CodeNotFound].
//
// The first of these reasons is returned: parameters that are invalid in any tree ([Check], then [Normalize]), what
// is missing, what the tree does not allow (CodeInvalid, CodeCycle), a conflict. A refused call changes nothing. A
// call without an effect (a rename to the same name, a move to the same place) succeeds, and makes no [Change].
//
// Times are UTC, and the same whenever something is read again.
type Store interface { //nolint:interfacebloat // the methods of one service, each of which clients call by name
	// CreateWorkspace, CreateFolder and CreateThread are idempotent by the caller's id: a call with the present name
	// and place returns what exists. An id that is, or was, something else's is CodeInvalid. Folders, threads and
	// workspaces have separate ids.
	CreateWorkspace(ctx context.Context, p CreateWorkspace) (Workspace, error)
	// Workspaces returns all in byte order of their ids; never nil.
	Workspaces(ctx context.Context) ([]Workspace, error)
	RenameWorkspace(ctx context.Context, p RenameWorkspace) (Workspace, error)
	// DeleteWorkspace hides a workspace with all its content: it is one change, without new versions. If it has
	// folders, threads or a live document, it needs Recursive (else CodeInvalid).
	DeleteWorkspace(ctx context.Context, p DeleteWorkspace) (Workspace, error)

	// CreateFolder refuses folders deeper than MaxDepth (CodeInvalid).
	CreateFolder(ctx context.Context, p CreateFolder) (Folder, error)
	RenameFolder(ctx context.Context, p RenameFolder) (Folder, error)
	// MoveFolder refuses to put a folder into or below itself ([CodeCycle]), and what would become deeper than
	// MaxDepth (CodeInvalid).
	MoveFolder(ctx context.Context, p MoveFolder) (Folder, error)
	// DeleteFolder returns the folder's last state. A large subtree may go in pieces, the deepest folders first:
	// every thread is in its folder or at the parent throughout, and after an error the call can be retried.
	DeleteFolder(ctx context.Context, p DeleteFolder) (Folder, error)

	CreateThread(ctx context.Context, p CreateThread) (Thread, error)
	RenameThread(ctx context.Context, p RenameThread) (Thread, error)
	MoveThread(ctx context.Context, p MoveThread) (Thread, error)
	DeleteThread(ctx context.Context, p DeleteThread) (Thread, error)

	// Tree returns a page of the tree at one moment. All pages together have each lasting folder and thread once, in
	// the order of ids.
	Tree(ctx context.Context, q Query) (Page, error)

	// Doc returns a scope's document and the one in effect there.
	Doc(ctx context.Context, s Scope) (View, error)
	// Save compares versions before texts: an unchanged text with a stale version is a conflict.
	Save(ctx context.Context, p Save) (Saved, error)
	// Archive makes a version with the same text. Drafts can be archived too.
	Archive(ctx context.Context, p ArchiveDoc) (ArchivedNow, error)
	// Restore makes a version even if the text is the same.
	Restore(ctx context.Context, p RestoreDoc) (Doc, error)
	// Revisions and ArchivedDocs never return nil without an error.
	Revisions(ctx context.Context, q RevisionQuery) ([]Revision, error)
	ArchivedDocs(ctx context.Context, q ArchivedQuery) ([]ArchivedDoc, error)
	// Resolve returns the document in effect for a thread. An unknown thread counts as one at the root, and the
	// answer says so.
	Resolve(ctx context.Context, t ThreadRef) (Resolution, error)

	// Changes returns the changes of all workspaces after a place: as many whole transactions as the limit of changes
	// allows, but at least one; a limit below 1 is 1,000.
	Changes(ctx context.Context, after Seq, limit int) (Changes, error)
	// Affected counts the folders below the scope that inherit its active document, or would if it had one.
	Affected(ctx context.Context, s Scope) (int, error)
	// Listen calls wake, from one goroutine at a time: once when it listens, then soon after changes, whoever made
	// them, and at times without any. Wake must return at once. It returns when ctx ends, or when it cannot listen
	// any more: then the caller must call it again, and ask for Changes meanwhile.
	Listen(ctx context.Context, wake func()) error

	// Thin removes autosaves older than ThinAge, except for the last of each ThinStep (counted from the Unix epoch)
	// of a document, and changes older than ChangesAge. It returns how many revisions it removed.
	Thin(ctx context.Context, now time.Time) (int, error)
}

// Times of [Store.Thin].
const (
	// ThinAge is how long every autosave is kept.
	ThinAge = 30 * 24 * time.Hour
	// ThinStep is the period of which one autosave is kept after that.
	ThinStep = 10 * time.Minute
	// ChangesAge is how far the log of changes goes back.
	ChangesAge = 7 * 24 * time.Hour
)

// Page is a part of a tree, or all of it. The lists are never nil.
type Page struct {
	// Folders and Threads are in the order of their ids.
	Folders []Folder `json:"folders"`
	Threads []Thread `json:"threads"`
	// AgentsDocs are the live documents of the page's folders, in any order; on the first page also the queried
	// scope's.
	AgentsDocs []Summary `json:"agents_docs"`
	// NextCursor asks for the next page; nil at the end.
	NextCursor *string `json:"next_cursor"`
}

// MaxPage is how many folders and threads together a page has at most.
const MaxPage = 10_000

// View is a scope's own document and the one in effect.
type View struct {
	// Explicit is the scope's own live document, drafts included; nil for none.
	Explicit *Doc `json:"explicit"`
	// Effective is nil if no document is in effect.
	Effective *Effective `json:"effective"`
}

// Saved is a saved document.
type Saved struct {
	Doc Doc `json:"doc"`
	// Unchanged says that the document had the text already: no version was made.
	Unchanged bool `json:"unchanged"`
}

// ArchivedNow says what archiving did.
type ArchivedNow struct {
	// Archived is false if there was no document.
	Archived bool `json:"archived"`
	// Doc is the archived document, nil for none; Effective is the one now in effect.
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
