package tree

// The parameters of a [Store]'s methods. Ids that callers choose follow [CheckID]; if ID is empty, the store makes a
// ULID. Actor is recorded; it may be empty. [Check] refuses what is invalid in any tree.

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

// DeleteWorkspace deletes a workspace. One that is not empty needs Recursive.
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

// DeleteFolder deletes a folder. One that is not empty needs Recursive: then the folders below it are deleted too,
// all their documents are archived, and their threads move to the deleted folder's parent.
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

// DeleteThread removes a thread from the tree. Its id is not used again.
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

	// Content is normalized by [Normalize].
	Content string `json:"content"`
	// ExpectedVersion is the version that the text is based on; nil or 0 for no document. It is
	// required for autosave.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	// ExpectedDocID guards against a document that was archived, and maybe created again; empty does not check.
	ExpectedDocID string `json:"expected_doc_id,omitempty"`
	// SaveReason is autosave or manual; empty is manual.
	SaveReason SaveReason `json:"save_reason,omitempty"`
	Actor      string     `json:"actor,omitempty"`
}

// ArchiveDoc archives the document of a scope. Expectations are those of Save, but a nil
// ExpectedVersion does not check.
type ArchiveDoc struct {
	Scope

	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	ExpectedDocID   string `json:"expected_doc_id,omitempty"`
	Actor           string `json:"actor,omitempty"`
}

// RestoreDoc restores the text of a revision, as the next version of the scope's live document. Without one the
// revision's document, which must be archived and of the scope (else CodeInvalid), becomes live again.
type RestoreDoc struct {
	Scope

	// DocID is the revision's document, any of the workspace if the scope has a live one. Empty
	// is the live one, else the scope's last archived.
	DocID   string `json:"doc_id,omitempty"`
	Version int64  `json:"version"`
	// ExpectedVersion is the version of the document that gets the text, live or archived; nil does not check.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	Actor           string `json:"actor,omitempty"`
}

// RevisionQuery asks for revisions, newest first.
type RevisionQuery struct {
	Scope

	// DocID is any document of the workspace, live or archived; then the folder is ignored.
	// Empty is the scope's live one.
	DocID string `json:"doc_id,omitempty"`
	// Limit is DefaultLimit if zero, and at most MaxLimit.
	Limit int `json:"limit,omitempty"`
	// BeforeVersion selects older ones; zero selects all.
	BeforeVersion  int64 `json:"before_version,omitempty"`
	IncludeContent bool  `json:"include_content,omitempty"`
}

// ArchivedQuery asks for archived documents, the last archived first by the log of changes.
type ArchivedQuery struct {
	Scope

	// All selects every scope of the workspace, deleted folders included; then the folder is ignored.
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

	// Depth bounds how many folders deep it goes below the scope; zero is no bound, 1 is the
	// scope's own folders and threads.
	Depth   int     `json:"depth,omitempty"`
	Threads Threads `json:"threads,omitempty"`
	// Cursor is NextCursor of the previous page; empty begins.
	Cursor string `json:"cursor,omitempty"`
}
