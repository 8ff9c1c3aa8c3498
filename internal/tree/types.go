package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// FolderID is a folder's id. The zero value is the workspace's root, null in JSON.
type FolderID string

// MarshalJSON implements json.Marshaler.
func (f FolderID) MarshalJSON() ([]byte, error) {
	if f == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *FolderID) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*f = ""
		return nil
	}
	var id string
	if err := json.Unmarshal(data, &id); err != nil {
		return err
	}
	if id == "" {
		return errors.New("a folder's id is never empty; the root is null")
	}
	*f = FolderID(id)
	return nil
}

// Workspace is what trees belong to.
type Workspace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Folder is a folder of a workspace.
type Folder struct {
	ID       string   `json:"id"`
	ParentID FolderID `json:"parent_id"`
	Name     string   `json:"name"`
}

// Thread is a conversation, placed in a folder or at the root.
type Thread struct {
	ID       string   `json:"id"`
	FolderID FolderID `json:"folder_id"`
	Title    string   `json:"title"`
}

// Status is the state of a document.
type Status string

// The states. Draft and active documents are live.
const (
	Draft    Status = "draft"    // its text is blank
	Active   Status = "active"   // it has a text
	Archived Status = "archived" // deleted, and kept for audit
)

// Title is the title of every document.
const Title = "AGENTS.md"

// Doc is a document.
type Doc struct {
	ID          string   `json:"id"`
	WorkspaceID string   `json:"workspace_id"`
	FolderID    FolderID `json:"folder_id"`
	Status      Status   `json:"status"`
	Title       string   `json:"title"`
	Content     string   `json:"content"`
	// ContentSHA256 is the content's, in lower-case hexadecimal.
	ContentSHA256 string    `json:"content_sha256"`
	Version       int64     `json:"version"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	CreatedBy     string    `json:"created_by"`
	UpdatedBy     string    `json:"updated_by"`
}

// Summary is a document without its text.
type Summary struct {
	ID            string   `json:"id"`
	FolderID      FolderID `json:"folder_id"`
	Status        Status   `json:"status"`
	ContentSHA256 string   `json:"content_sha256"`
	Version       int64    `json:"version"`
	// Chars is the length of the text in Unicode scalar values.
	Chars     int       `json:"chars"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Summary returns the document without its text.
func (d *Doc) Summary() Summary {
	return Summary{
		ID: d.ID, FolderID: d.FolderID, Status: d.Status, ContentSHA256: d.ContentSHA256,
		Version: d.Version, Chars: Chars(d.Content), UpdatedAt: d.UpdatedAt,
	}
}

// Effective is the document in effect for a scope, and where it comes from.
type Effective struct {
	Doc Doc `json:"doc"`
	// SourceFolderID is the scope that has the document.
	SourceFolderID FolderID `json:"source_folder_id"`
	// SourcePath are the names of the folders from the root down to that scope; never nil.
	SourcePath []string `json:"source_path"`
	// Inherited says that the document belongs to another scope than the one asked for.
	Inherited           bool      `json:"inherited"`
	ResolvedForFolderID FolderID  `json:"resolved_for_folder_id"`
	ResolvedAt          time.Time `json:"resolved_at"`
}

// SaveReason says why a version was saved.
type SaveReason string

// The reasons. Callers of [Store.Save] use one of the first two.
const (
	Autosave SaveReason = "autosave"
	Manual   SaveReason = "manual"
	Archive  SaveReason = "archive"
	Restore  SaveReason = "restore"
)

// Revision is one version of a document.
type Revision struct {
	DocID         string     `json:"doc_id"`
	Version       int64      `json:"version"`
	ContentSHA256 string     `json:"content_sha256"`
	Chars         int        `json:"chars"`
	SavedAt       time.Time  `json:"saved_at"`
	SavedBy       string     `json:"saved_by"`
	SaveReason    SaveReason `json:"save_reason"`
	// Content is nil unless it was asked for.
	Content *string `json:"content"`
}

// ArchivedDoc is an archived document.
type ArchivedDoc struct {
	Summary

	ArchivedAt time.Time `json:"archived_at"`
	ArchivedBy string    `json:"archived_by"`
	// Content is nil unless it was asked for.
	Content *string `json:"content"`
}
