package gateway

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// The notifications.
const (
	notifyDoc  = "thread/agents_doc/changed"
	notifyTree = "thread/tree/changed"
)

const actionGap tree.Action = "gap"

// DocChanged are the params of thread/agents_doc/changed.
type DocChanged struct {
	Seq          tree.Seq      `json:"seq"           jsonschema:"watch again with this since_seq, and nothing is missed"`
	WorkspaceID  string        `json:"workspace_id"`
	FolderID     tree.FolderID `json:"folder_id"`
	Action       tree.Action   `json:"action"        jsonschema:"what was done last"`
	Actor        string        `json:"actor"`
	Summary      *tree.Summary `json:"summary"       jsonschema:"the scope's document now; null if it was archived"`
	AffectsCount *int          `json:"affects_count" jsonschema:"how many folders below inherit the document, or would; null if it is unknown"`
}

// TreeChanged are the params of thread/tree/changed. One of Workspace, Folder, Thread and
// AgentsDoc is set, as it is now, or was if deleted. None is set with Gap.
type TreeChanged struct {
	Seq         tree.Seq        `json:"seq"          jsonschema:"watch again with this since_seq, and nothing is missed"`
	WorkspaceID string          `json:"workspace_id"`
	Action      tree.Action     `json:"action"       jsonschema:"what was done last; gap: read the workspace again"`
	Actor       string          `json:"actor"`
	Workspace   *tree.Workspace `json:"workspace"`
	Folder      *tree.Folder    `json:"folder"`
	Thread      *tree.Thread    `json:"thread"`
	AgentsDoc   *tree.Summary   `json:"agents_doc"   jsonschema:"the summary of a document that was saved, archived or restored, as thread/tree has it"`
	Gap         bool            `json:"gap"          jsonschema:"more has changed than is reported: read everything again"`
}

func notifications() []rpc.Notification {
	return []rpc.Notification{
		rpc.TypedNotification[DocChanged](notifyDoc, "The document of a scope was saved, archived or restored, in a workspace that this connection watches."),
		rpc.TypedNotification[TreeChanged](notifyTree, "A workspace, folder or thread was made, renamed, moved or deleted, or a document was saved, archived or restored, in a workspace that this connection watches."),
		rpc.TypedNotification[ManifestKept](notifyKept, "Manifests were kept, by whatever gateway on the database: those that this connection watches for."),
		rpc.TypedNotification[Event](notifyEvent, "Something happened in the engine, for connections that watch its events."),
		rpc.TypedNotification[backtest.Pace](notifyBacktest, "How far the backtest is that this connection runs."),
		rpc.TypedNotification[TurnEnded](notifyTurn, "A turn that nobody ended was ended as interrupted: one that this connection began or used, or of a workspace that it watches, by the same token."),
	}
}

// note is a change on its way to the connections.
type note struct {
	change tree.Change // the last one of its item
	resume tree.Seq    // the place to go on from after this note
	gap    bool        // stands for all changes up to resume
	tree   bool        // marks a document's note for clients that show the tree

	// A queued note is replaced by the next one with its key.
	key, method string
	params      json.RawMessage
}

// itemOf names what a change is about. A document counts by its scope, so that it replaces an archived one.
func itemOf(c *tree.Change) string {
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

// digest makes notes of the changes of one workspace: one for each item, its last change, in the order of the log,
// and before a document's another one for clients that show the tree. More than most of them become one gap.
func digest(changes []tree.Change, most int) []note {
	last := make(map[string]int, len(changes))
	for i := range changes {
		last[itemOf(&changes[i])] = i
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
		if last[itemOf(&changes[i])] == i {
			if changes[i].Doc != nil {
				notes = append(notes, note{change: changes[i], resume: changes[i].Seq, tree: true})
			}
			notes = append(notes, note{change: changes[i], resume: changes[i].Seq})
		}
	}
	// The changes of one transaction share a seq, as do both notes of a document: after all but
	// the last, watching resumes from the place before.
	for i := range len(notes) - 1 {
		if notes[i+1].change.Seq == notes[i].change.Seq {
			notes[i].resume = notes[i].change.Seq - 1
		}
	}
	return notes
}

func gapNote(workspace string, upTo tree.Seq) note {
	return note{change: tree.Change{WorkspaceID: workspace, Seq: upTo, Action: actionGap}, resume: upTo, gap: true}
}

// encode fills in what is sent. Affects is nil if it is unknown or irrelevant.
func (n *note) encode(affects *int) error {
	c := &n.change
	n.key, n.method = c.WorkspaceID+"/"+itemOf(c), notifyTree
	var params any = TreeChanged{
		Seq: n.resume, WorkspaceID: c.WorkspaceID, Action: c.Action, Actor: c.Actor,
		Workspace: c.Workspace, Folder: c.Folder, Thread: c.Thread, AgentsDoc: c.Doc, Gap: n.gap,
	}
	switch {
	case n.gap:
		n.key = c.WorkspaceID + "/gap"
	case n.tree:
		n.key = c.WorkspaceID + "/tree/" + itemOf(c)
	case c.Doc != nil:
		doc := DocChanged{Seq: n.resume, WorkspaceID: c.WorkspaceID, FolderID: c.Doc.FolderID, Action: c.Action, Actor: c.Actor, AffectsCount: affects}
		if c.Action != tree.DocArchived {
			doc.Summary = c.Doc
		}
		n.method, params = notifyDoc, doc
	}
	var err error
	n.params, err = rpc.Encode(params)
	return err
}

// byWorkspace groups the changes of the wanted workspaces, in the order of the log.
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
