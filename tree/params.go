package tree

// The parameters of the methods of a [Store]. Ids that callers choose themselves
// follow [CheckID]; where ID is empty, the store makes a ULID. Actor is who did
// it, for the record; empty is nobody. The Check methods refuse what makes no sense
// in any tree.

// CreateWorkspace makes a workspace.
type CreateWorkspace struct {
	ID    string `json:"id,omitempty"`
	Name  string `json:"name"`
	Actor string `json:"actor,omitempty"`
}

// RenameWorkspace gives a workspace another name.
type RenameWorkspace struct {
	WorkspaceID string `json:"workspace_id"`
	Name        string `json:"name"`
	Actor       string `json:"actor,omitempty"`
}

// DeleteWorkspace puts a workspace away. One that is not empty needs Recursive.
type DeleteWorkspace struct {
	WorkspaceID string `json:"workspace_id"`
	Recursive   bool   `json:"recursive,omitempty"`
	Actor       string `json:"actor,omitempty"`
}

// CreateFolder makes a folder.
type CreateFolder struct {
	WorkspaceID string   `json:"workspace_id"`
	ParentID    FolderID `json:"parent_id,omitzero"`
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	Actor       string   `json:"actor,omitempty"`
}

// RenameFolder gives a folder another name.
type RenameFolder struct {
	WorkspaceID string `json:"workspace_id"`
	FolderID    string `json:"folder_id"`
	Name        string `json:"name"`
	Actor       string `json:"actor,omitempty"`
}

// MoveFolder gives a folder another parent.
type MoveFolder struct {
	WorkspaceID string   `json:"workspace_id"`
	FolderID    string   `json:"folder_id"`
	ParentID    FolderID `json:"parent_id,omitzero"`
	Actor       string   `json:"actor,omitempty"`
}

// DeleteFolder puts a folder away. One that is not empty needs Recursive: then the
// folders below it go too, the documents of all of them are archived, and the
// threads in them move to the deleted folder's parent.
type DeleteFolder struct {
	WorkspaceID string `json:"workspace_id"`
	FolderID    string `json:"folder_id"`
	Recursive   bool   `json:"recursive,omitempty"`
	Actor       string `json:"actor,omitempty"`
}

// CreateThread makes a thread.
type CreateThread struct {
	WorkspaceID string   `json:"workspace_id"`
	FolderID    FolderID `json:"folder_id,omitzero"`
	ID          string   `json:"id,omitempty"`
	Title       string   `json:"title"`
	Actor       string   `json:"actor,omitempty"`
}

// RenameThread gives a thread another title.
type RenameThread struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	Title       string `json:"title"`
	Actor       string `json:"actor,omitempty"`
}

// MoveThread places a thread elsewhere.
type MoveThread struct {
	WorkspaceID string   `json:"workspace_id"`
	ThreadID    string   `json:"thread_id"`
	FolderID    FolderID `json:"folder_id,omitzero"`
	Actor       string   `json:"actor,omitempty"`
}

// DeleteThread takes a thread out of the tree. Its id is not used again.
type DeleteThread struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	Actor       string `json:"actor,omitempty"`
}

// Scope is a workspace's root, or a folder in it.
type Scope struct {
	WorkspaceID string   `json:"workspace_id"`
	FolderID    FolderID `json:"folder_id,omitzero"`
}

// ThreadRef names a thread.
type ThreadRef struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
}

// Save keeps a text as the document of a scope.
type Save struct {
	Scope

	// Content is normalised by [Normalize] before it is kept.
	Content string `json:"content"`
	// ExpectedVersion is the version that the text is based on; nil or 0 where there
	// should be no document yet. It must be given when the reason is autosave.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	// ExpectedDocID guards against a document that was archived and made anew in
	// between, and against one that is gone; empty does not look.
	ExpectedDocID string `json:"expected_doc_id,omitempty"`
	// SaveReason is autosave or manual; empty is manual.
	SaveReason SaveReason `json:"save_reason,omitempty"`
	Actor      string     `json:"actor,omitempty"`
}

// ArchiveDoc puts the document of a scope away. What is expected is compared as
// for Save, but a nil ExpectedVersion does not look.
type ArchiveDoc struct {
	Scope

	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	ExpectedDocID   string `json:"expected_doc_id,omitempty"`
	Actor           string `json:"actor,omitempty"`
}

// RestoreDoc brings the text of a revision back. Where the scope has a live
// document, that one gets it as its next version; else the document of the
// revision, which must be an archived one of the scope (else CodeInvalid), comes
// back to life.
type RestoreDoc struct {
	Scope

	// DocID is the document that the revision is of, which may be any of the workspace
	// where the scope has a live one; empty is the live one, else the one of the scope
	// that was archived last.
	DocID   string `json:"doc_id,omitempty"`
	Version int64  `json:"version"`
	// ExpectedVersion is the version of the document that gets the text, live or
	// archived; nil does not look.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	Actor           string `json:"actor,omitempty"`
}

// RevisionQuery asks for revisions, newest first.
type RevisionQuery struct {
	Scope

	// DocID is a document of the workspace, live or archived, in whatever scope: the
	// folder is not looked at then. Empty is the scope's live one.
	DocID string `json:"doc_id,omitempty"`
	// Limit is DefaultLimit if zero, and at most MaxLimit.
	Limit int `json:"limit,omitempty"`
	// BeforeVersion takes only older ones; zero takes all.
	BeforeVersion  int64 `json:"before_version,omitempty"`
	IncludeContent bool  `json:"include_content,omitempty"`
}

// ArchivedQuery asks for archived documents, the one that was archived last first:
// by the log of changes, whatever the clock said.
type ArchivedQuery struct {
	Scope

	// All takes those of every scope of the workspace, deleted folders included: the
	// folder is not looked at then.
	All bool `json:"all,omitempty"`
	// Limit is DefaultLimit if zero, and at most MaxLimit.
	Limit          int  `json:"limit,omitempty"`
	IncludeContent bool `json:"include_content,omitempty"`
}

// Limits of lists of revisions and archived documents.
const (
	DefaultLimit = 100
	MaxLimit     = 1_000
)

// Threads says whether a [Query] takes threads.
type Threads string

// The choices; empty is all.
const (
	AllThreads Threads = "all"
	NoThreads  Threads = "none"
)

// Query asks for a workspace's tree, or what is below a folder.
type Query struct {
	Scope

	// Depth bounds how many folders deep it goes below the scope; zero is no bound.
	// 1 are the scope's own folders and threads.
	Depth   int     `json:"depth,omitempty"`
	Threads Threads `json:"threads,omitempty"`
	// Cursor is NextCursor of the page before; empty begins.
	Cursor string `json:"cursor,omitempty"`
}
