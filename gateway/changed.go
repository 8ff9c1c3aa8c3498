package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/tree"
)

// The notifications.
const (
	NotifyDoc  = "thread/agents_doc/changed"
	NotifyTree = "thread/tree/changed"
)

// actionGap stands where other notifications have what was done.
const actionGap tree.Action = "gap"

// DocChanged are the params of thread/agents_doc/changed.
type DocChanged struct {
	// Seq is the place to watch from after this notification.
	Seq         tree.Seq      `json:"seq"          jsonschema:"watch again with this since_seq, and nothing is missed"`
	WorkspaceID string        `json:"workspace_id"`
	FolderID    tree.FolderID `json:"folder_id"`
	Action      tree.Action   `json:"action"       jsonschema:"what was done last"`
	Actor       string        `json:"actor"`
	// Summary is what the scope has now; nil if the document was archived.
	Summary *tree.Summary `json:"summary" jsonschema:"the scope's document now; null if it was archived"`
	// AffectsCount is nil where it could not be told.
	AffectsCount *int `json:"affects_count" jsonschema:"how many folders below inherit the document, or would; null if it could not be told"`
}

// TreeChanged are the params of thread/tree/changed. One of Workspace, Folder,
// Thread and AgentsDoc is there, as it is now; for what was deleted, as it was. None
// is there with Gap.
type TreeChanged struct {
	Seq         tree.Seq        `json:"seq"          jsonschema:"watch again with this since_seq, and nothing is missed"`
	WorkspaceID string          `json:"workspace_id"`
	Action      tree.Action     `json:"action"       jsonschema:"what was done last; gap: read the workspace again"`
	Actor       string          `json:"actor"`
	Workspace   *tree.Workspace `json:"workspace"`
	Folder      *tree.Folder    `json:"folder"`
	Thread      *tree.Thread    `json:"thread"`
	// AgentsDoc is the summary of a document as thread/tree has it, also of one that
	// was archived: who shows a tree needs no other notification.
	AgentsDoc *tree.Summary `json:"agents_doc" jsonschema:"the summary of a document that was saved, archived or restored, as thread/tree has it"`
	// Gap says that more has changed than can be told one by one.
	Gap bool `json:"gap" jsonschema:"more has changed than is told: read everything again"`
}

// notifications describes them for the schema.
func notifications() []rpc.Notification {
	return []rpc.Notification{
		rpc.TypedNotification[DocChanged](NotifyDoc, "The document of a scope was saved, archived or restored, in a workspace that this connection watches."),
		rpc.TypedNotification[TreeChanged](NotifyTree, "A workspace, folder or thread was made, renamed, moved or deleted, or a document was saved, archived or restored, in a workspace that this connection watches."),
		rpc.TypedNotification[TurnEnded](NotifyTurn, "A turn that nobody ended was ended as interrupted: one that this connection began or used, or of a workspace that it watches, by the same token."),
	}
}

// note is a change on its way to the connections.
type note struct {
	// change is the last of its thing; its seq is the change's.
	change tree.Change
	// resume is the place to go on from once this note has arrived.
	resume tree.Seq
	// gap stands for all changes up to resume.
	gap bool
	// tree says that it is the other note of a document: the one for who shows the
	// tree.
	tree bool

	// key, method and params are what is sent. One that still waits is replaced by
	// the next one with its key.
	key, method string
	params      json.RawMessage
}

// thing names what a change is about. Documents count by their scope: one that
// follows an archived one is told in its place.
func thing(c *tree.Change) string {
	switch {
	case c.Doc != nil:
		return "doc/" + string(c.Doc.FolderID)
	case c.Folder != nil:
		return "folder/" + c.Folder.ID
	case c.Thread != nil:
		return "thread/" + c.Thread.ID
	default:
		return "workspace"
	}
}

// digest makes notes of the changes of one workspace, which are in the order of
// the log: one for each thing, its last change, in the order of those, and of a
// document another one in front of it, for who shows the tree. More than most of them, or a
// gap in the log, are one note that says so.
func digest(changes []tree.Change, most int) []note {
	last := make(map[string]int, len(changes))
	for i := range changes {
		last[thing(&changes[i])] = i
	}
	count := len(last)
	for _, i := range last {
		if changes[i].Doc != nil {
			count++
		}
	}
	if count > most {
		end := changes[len(changes)-1]
		return []note{gapNote(end.WorkspaceID, end.Seq)}
	}
	var notes []note
	for i := range changes {
		if last[thing(&changes[i])] == i {
			if changes[i].Doc != nil {
				notes = append(notes, note{change: changes[i], resume: changes[i].Seq, tree: true})
			}
			notes = append(notes, note{change: changes[i], resume: changes[i].Seq})
		}
	}
	// The changes of one transaction have one seq, and so have both notes of a document. Behind all but the last of them
	// the place before it is the one from which nothing is missed.
	for i := range len(notes) - 1 {
		if notes[i+1].change.Seq == notes[i].change.Seq {
			notes[i].resume = notes[i].change.Seq - 1
		}
	}
	return notes
}

// gapNote says that everything up to a place has to be read.
func gapNote(workspace string, upTo tree.Seq) note {
	return note{change: tree.Change{WorkspaceID: workspace, Seq: upTo, Action: actionGap}, resume: upTo, gap: true}
}

// encode fills in what is sent. Affects is nil where it could not be told, or does
// not matter.
func (n *note) encode(affects *int) error {
	c := &n.change
	n.key, n.method = c.WorkspaceID+"/"+thing(c), NotifyTree
	var params any = TreeChanged{
		Seq: n.resume, WorkspaceID: c.WorkspaceID, Action: c.Action, Actor: c.Actor,
		Workspace: c.Workspace, Folder: c.Folder, Thread: c.Thread, AgentsDoc: c.Doc, Gap: n.gap,
	}
	switch {
	case n.gap:
		n.key = c.WorkspaceID + "/gap"
	case n.tree:
		n.key = c.WorkspaceID + "/tree/" + thing(c)
	case c.Doc != nil:
		doc := DocChanged{Seq: n.resume, WorkspaceID: c.WorkspaceID, FolderID: c.Doc.FolderID, Action: c.Action, Actor: c.Actor, AffectsCount: affects}
		if c.Action != tree.DocArchived {
			doc.Summary = c.Doc
		}
		n.method, params = NotifyDoc, doc
	}
	// Without the escapes for pages, which no one puts these into as they are.
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(params); err != nil {
		return err
	}
	n.params = bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	return nil
}

// byWorkspace sorts changes by the workspaces that are wanted. The order of the
// log stays within each.
func byWorkspace(list []tree.Change, wanted map[string]bool) [][]tree.Change {
	groups := map[string][]tree.Change{}
	for _, c := range list {
		if wanted[c.WorkspaceID] {
			groups[c.WorkspaceID] = append(groups[c.WorkspaceID], c)
		}
	}
	var out [][]tree.Change
	for _, group := range groups {
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b []tree.Change) int { return cmp.Compare(a[0].WorkspaceID, b[0].WorkspaceID) })
	return out
}
