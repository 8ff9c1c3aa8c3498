package itemstore

import (
	"time"

	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// Scope says for whom an item is. The empty one is undefined.
type Scope string

// The scopes.
const (
	// ScopeWorkspace is for everybody in a workspace; such items have no ScopeID.
	ScopeWorkspace Scope = "workspace"
	// ScopeThread is for one conversation.
	ScopeThread Scope = "thread"
	// ScopeAgent is for one agent.
	ScopeAgent Scope = "agent"
	// ScopeUser is for one person.
	ScopeUser Scope = "user"
)

// Scopes returns the scopes, the widest first.
func Scopes() []Scope { return []Scope{ScopeWorkspace, ScopeUser, ScopeAgent, ScopeThread} }

// Source says where an item came from. The empty one is undefined.
type Source string

// The sources.
const (
	// SourceTurn is extraction from what was said in a turn.
	SourceTurn Source = "turn"
	// SourceTool is a call of a tool by a model.
	SourceTool Source = "tool"
	// SourceUser is a person, such as with the command line.
	SourceUser Source = "user"
)

// Sources returns the sources.
func Sources() []Source { return []Source{SourceTurn, SourceTool, SourceUser} }

// Bounds of an item. Characters are Unicode scalar values.
const (
	// MaxText is the most characters of a text.
	MaxText = turnpolicy.MaxFactText
	// MaxEvidence is the most characters of evidence.
	MaxEvidence = turnpolicy.MaxEvidence
	// MaxName is the most bytes of an id that callers choose: of a workspace, a
	// thread, an agent, a user.
	MaxName = 400
	// MaxSlot is the most bytes of a slot.
	MaxSlot = 100
)

// Item is one thing that is remembered. Its JSON is a line of an export.
type Item struct {
	// ID is a ULID.
	ID          string `json:"id"`
	WorkspaceID string `json:"workspace_id"`
	Scope       Scope  `json:"scope"`
	// ScopeID is the thread, agent or user; empty for a workspace's items.
	ScopeID  string              `json:"scope_id,omitempty"`
	Category turnpolicy.Category `json:"category"`
	Text     string              `json:"text"`
	// Evidence is what was said, in the words in which it was said.
	Evidence string `json:"evidence,omitempty"`
	Source   Source `json:"source"`
	// Slot names what the item is the one answer to, such as "home_city"; most items
	// have none. In a scope at most one item in effect has it.
	Slot      string    `json:"slot,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// UpdatedAt is when it was made, or last said again.
	UpdatedAt time.Time `json:"updated_at"`
	// LastUsedAt is when it last went into a prompt; zero is never.
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	// Uses is how often it did.
	Uses int `json:"uses"`
	// Supersedes is the item that it took the place of, if any.
	Supersedes string `json:"supersedes,omitempty"`
	// SupersededBy is the item that took its place. Such an item is history: it is
	// neither recalled nor found, and goes when its successor is forgotten.
	SupersededBy string `json:"superseded_by,omitempty"`
	// Hash is the SHA-256 of the normalised text ([recall.Key]), in hex.
	Hash string `json:"hash"`
}

// New is an item to be.
type New struct {
	Scope Scope
	// ScopeID must be empty for ScopeWorkspace and nothing else.
	ScopeID  string
	Category turnpolicy.Category
	// Text is at most [MaxText] characters, Evidence at most [MaxEvidence]. Blanks
	// around the text are taken off.
	Text, Evidence string
	Source         Source
	// Slot makes it take the place of the scope's item with this slot; see [Item].
	Slot string
	// Replaces is the id of an item in effect that it takes the place of, in
	// whichever scope of the workspace that is. Whether the caller may see that one is
	// the caller's business: see [Store.Get].
	Replaces string
}

// MaxBatch is the most items of a [Batch].
const MaxBatch = 64

// Batch is what is remembered together: all of it or, after an error, nothing.
type Batch struct {
	WorkspaceID string
	// Key makes a repetition harmless: a batch whose key the workspace has seen in the
	// last 30 days changes nothing, whatever is in it. Empty is no key.
	Key   string
	Items []New
	// Restore says that what was forgotten may come back, since the user asked for it
	// in so many words.
	Restore bool
}

// Change says what became of a new item.
type Change string

// The changes.
const (
	// Added is an item that there was not.
	Added Change = "added"
	// Known is one that there was, by its text: it counts as said again now.
	Known Change = "known"
	// Replaced is one that took the place of another.
	Replaced Change = "replaced"
	// Forgotten is one that was not kept: the user had it forgotten.
	Forgotten Change = "forgotten"
)

// Outcome says what became of one new item.
type Outcome struct {
	Change Change
	// Item is the item as it is in the store now. Of what was not kept, or was
	// forgotten since a repeated batch was new, it is what the caller gave, or
	// nothing, and has no ID.
	Item Item
	// Replaced are the ids of those that it took the place of: by slot, by id, or one
	// of each.
	Replaced []string
	// Repeated says that this is what an earlier batch of the same key did, and
	// nothing was changed.
	Repeated bool
}
