package tree

import "time"

// Seq is a place in the log of changes, after all changes up to it. The changes of one
// transaction share one, in no order. Numbers grow and have gaps. Zero is the beginning.
type Seq int64

// Action says what was done.
type Action string

// The actions.
const (
	Created     Action = "created"
	Renamed     Action = "renamed"
	Moved       Action = "moved"
	Deleted     Action = "deleted"
	DocSaved    Action = "saved"
	DocArchived Action = "archived"
	DocRestored Action = "restored"
)

// Change is one change of a tree. One of Workspace, Folder, Thread and Doc is set: its state
// after the change, and for Deleted its last.
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
	// Next is the place after the list. Without changes it is the given place or a later one.
	Next Seq
	// More says that the limit cut the list off.
	More bool
	// Gap says that changes after the given place are gone, or that the place was never one of this log: the caller
	// must read everything again. Then the list is empty and Next is the newest place.
	Gap bool
}
