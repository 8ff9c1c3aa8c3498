package tree

import "time"

// Seq is a place in the log of changes: behind all changes up to it. The changes
// of one transaction share one; among them the order means nothing. Numbers grow
// and have gaps. Zero is the beginning.
type Seq int64

// Action says what was done.
type Action string

// The actions. Saved, archived and restored are those of documents.
const (
	Created     Action = "created"
	Renamed     Action = "renamed"
	Moved       Action = "moved"
	Deleted     Action = "deleted"
	DocSaved    Action = "saved"
	DocArchived Action = "archived"
	DocRestored Action = "restored"
)

// Change is one change of a tree. Exactly one of Workspace, Folder, Thread and Doc
// is set: what it is by then, and for Deleted what it was last.
type Change struct {
	Seq         Seq
	WorkspaceID string
	Action      Action
	Actor       string
	At          time.Time

	Workspace *Workspace
	Folder    *Folder
	Thread    *Thread
	Doc       *Summary
}

// Changes are changes in the order of the log.
type Changes struct {
	List []Change
	// Next is the place behind the last of the list. Without any it is the place that
	// was given, or a later one with nothing between.
	Next Seq
	// More says that the limit cut the list off.
	More bool
	// Gap says that changes behind the given place are not in the log any more, or
	// that the place was never one of this log: who asks has to read everything
	// again. The list is empty then, and Next is the newest place.
	Gap bool
}
