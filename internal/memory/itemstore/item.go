package itemstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Scope says whose an item is. The empty one is undefined.
type Scope string

// The scopes.
const (
	ScopeWorkspace Scope = "workspace" // everybody in a workspace; such items have no ScopeID
	ScopeThread    Scope = "thread"    // one conversation
	ScopeAgent     Scope = "agent"
	ScopeUser      Scope = "user"
)

// Scopes returns the scopes, the widest first.
func Scopes() []Scope { return []Scope{ScopeWorkspace, ScopeUser, ScopeAgent, ScopeThread} }

// Source says where an item came from. The empty one is undefined.
type Source string

// The sources.
const (
	SourceTurn Source = "turn" // extraction from a turn's messages
	SourceTool Source = "tool" // a tool call by a model
	SourceUser Source = "user" // a person, as with the command line
)

// Sources returns the sources.
func Sources() []Source { return []Source{SourceTurn, SourceTool, SourceUser} }

// Bounds of an item. Characters are Unicode scalar values.
const (
	MaxText     = turnpolicy.MaxFactText
	MaxEvidence = turnpolicy.MaxEvidence
	MaxName     = 400 // bytes of an id that callers choose: of a workspace, thread, agent or user
	MaxSlot     = 100 // bytes
)

// Item is one remembered thing. Its JSON is a line of an export.
type Item struct {
	ID          string `json:"id"` // a ULID
	WorkspaceID string `json:"workspace_id"`
	Scope       Scope  `json:"scope"`
	// ScopeID is the thread, agent or user; empty for a workspace's items.
	ScopeID  string              `json:"scope_id,omitempty"`
	Category turnpolicy.Category `json:"category"`
	Text     string              `json:"text"`
	// Evidence is the original wording.
	Evidence string `json:"evidence,omitempty"`
	Source   Source `json:"source"`
	// Slot names the question that the item alone answers, such as "home_city"; most items have none. In a scope at
	// most one item in effect has it.
	Slot      string    `json:"slot,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// UpdatedAt is when it was created or last confirmed.
	UpdatedAt time.Time `json:"updated_at"`
	// LastUsedAt is when it last went into a prompt; zero is never.
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	// Uses counts the prompts that it went into.
	Uses int `json:"uses"`
	// Supersedes is the item that it replaced, if any.
	Supersedes string `json:"supersedes,omitempty"`
	// SupersededBy is the item that replaced it. Such an item is history: it is not recalled, and goes when its
	// successor is forgotten.
	SupersededBy string `json:"superseded_by,omitempty"`
	// Hash is the SHA-256 of the normalised text ([recall.Key]), in hex.
	Hash string `json:"hash"`
}

// MaxBatch is the most items of a [Batch].
const MaxBatch = 64

// Batch is remembered as a whole or, after an error, not at all.
type Batch struct {
	WorkspaceID string
	// Key makes a second run harmless: a batch whose key the workspace has seen in the last 30 days changes nothing,
	// whatever its items. Without a key it always runs.
	Key string
	// Items are given by scope, category, text, evidence, source and slot. Supersedes is the id of an item in effect that
	// one replaces, in any scope of the workspace; the caller checks with [Store.Get] that it is in view.
	Items []Item
	// Restore lets forgotten items come back, because the user explicitly asked for it.
	Restore bool
}

// Change says what happened to a new item.
type Change string

// The changes.
const (
	Added     Change = "added"     // a new item
	Known     Change = "known"     // the text was there and is confirmed
	Replaced  Change = "replaced"  // a new item that replaced another
	Forgotten Change = "forgotten" // not stored, because the user had it forgotten
)

// Outcome says what happened to one new item.
type Outcome struct {
	Change Change
	// Item is the item as stored. If it was not stored, it is what the caller gave, without an ID.
	Item Item
	// Replaced are the ids of the items that it replaced, by slot or by id.
	Replaced []string
}

// View bounds what a caller may see. Every read takes one and returns nothing outside of it. The zero value sees the
// items of the workspace without a name.
type View struct {
	WorkspaceID string // its own items are always in view
	// ThreadID, AgentID and UserID each add the items of that scope in the workspace, unless empty.
	ThreadID, AgentID, UserID string
	UserEverywhere            bool // adds the items of the user in all workspaces
	// AllScopes adds everything else in the workspace, for its operator. It excludes UserEverywhere.
	AllScopes bool
}

// Hit is a result of a search.
type Hit struct {
	Item

	Score float64 `json:"score" jsonschema:"how well it fits, in its workspace"`
}

// Filter selects items of a view. The zero value selects all in effect.
type Filter struct {
	Scope    Scope
	Category turnpolicy.Category
	History  bool // adds the items that others have replaced
}

// MaxPage is the most items of a page.
const MaxPage = 500

// Page is a part of a list. The zero value is its first page.
type Page struct {
	Limit       int    // the most items; 0 means 50
	After       string // the cursor that the previous page returned
	OldestFirst bool
}

// Removed is the result of forgetting.
type Removed struct {
	// IDs are the deleted items, older versions included.
	IDs []string
	// Lingering says why their bytes may still be in the files of the database, for instance because another program
	// was reading and SQLite's log could not be emptied. The next forgetting retries, and so does opening.
	Lingering error
}

// Stats are about the items in view.
type Stats struct {
	Items      int                         `json:"items"`   // in effect
	History    int                         `json:"history"` // replaced by others
	Scopes     map[Scope]int               `json:"scopes"`  // of the items in effect, as are Categories and Uses
	Categories map[turnpolicy.Category]int `json:"categories"`
	Uses       int                         `json:"uses"`  // prompts that they went into
	Bytes      int64                       `json:"bytes"` // size of the whole database
}

// Imported counts the results of an import.
type Imported struct {
	Added     int `json:"added"`
	Replaced  int `json:"replaced"`  // new, and replaced older ones
	Known     int `json:"known"`     // were here already
	Outdated  int `json:"outdated"`  // not stored: the existing item is newer
	Forgotten int `json:"forgotten"` // not stored: a user had them forgotten here
}

// CodeInvalid is the code of errors about a caller's input. Nothing was changed.
const CodeInvalid sqldb.Code = "invalid"

// maxKey bounds a batch's key, in bytes.
const maxKey = 1000

func invalidf(hint, format string, args ...any) error {
	return sqldb.Failf(CodeInvalid, hint, format, args...)
}

// checkText refuses a text that is too long, and what no database takes: invalid UTF-8 and NUL.
func checkText(what, text string, n int, unit string, most int) error {
	switch {
	case n > most:
		return invalidf("shorten it", "%s has %d %s, %d are allowed", what, n, unit, most)
	case !utf8.ValidString(text):
		return invalidf("give UTF-8", "%s is not UTF-8", what)
	case strings.ContainsRune(text, 0):
		return invalidf("omit it", "%s has the character NUL", what)
	}
	return nil
}

func checkName(what, text string, most int) error {
	return checkText(what, text, len(text), "bytes", most)
}

func checkChars(what, text string, most int) error {
	return checkText(what, text, utf8.RuneCountInString(text), "characters", most)
}

func (b *Batch) check() error {
	if len(b.Items) > MaxBatch {
		return invalidf("split it", "a batch has %d items, %d are allowed", len(b.Items), MaxBatch)
	}
	if err := cmp.Or(checkName("the id of the workspace", b.WorkspaceID, MaxName), checkName("the key of the batch", b.Key, maxKey)); err != nil {
		return err
	}
	for n := range b.Items {
		item := b.item(n)
		if err := cmp.Or(item.check(), checkName("the id to replace", item.Supersedes, MaxName)); err != nil {
			return fmt.Errorf("item %d: %w", n+1, err)
		}
	}
	return nil
}

// item is an item of the batch with what its caller decides.
func (b *Batch) item(n int) Item {
	i := &b.Items[n]
	return Item{
		WorkspaceID: b.WorkspaceID, Scope: i.Scope, ScopeID: i.ScopeID, Category: i.Category, Text: strings.TrimSpace(i.Text),
		Evidence: i.Evidence, Source: i.Source, Slot: i.Slot, Supersedes: i.Supersedes,
	}
}

func (i *Item) check() error {
	err := cmp.Or(
		known("scope", i.Scope, Scopes()),
		known("category", i.Category, turnpolicy.Categories()),
		known("source", i.Source, Sources()),
		checkName("the id of the workspace", i.WorkspaceID, MaxName),
		checkName("the id of the scope", i.ScopeID, MaxName),
		checkName("the slot", i.Slot, MaxSlot),
		checkChars("the text", i.Text, MaxText),
		checkChars("the evidence", i.Evidence, MaxEvidence),
	)
	switch {
	case err != nil:
		return err
	case (i.Scope == ScopeWorkspace) != (i.ScopeID == ""):
		return invalidf("a workspace's items have no id of a scope, all others have one", "the scope %s with the id %q", i.Scope, i.ScopeID)
	case recall.Key(i.Text) == "":
		return invalidf("", "the text says nothing")
	}
	return nil
}

func known[T ~string](what string, value T, all []T) error {
	if slices.Contains(all, value) {
		return nil
	}
	return invalidf("", "there is no %s %q", what, value)
}

// plainIDs returns the ids that an item can have, each once: the databases refuse others.
func plainIDs(ids []string) (list []string) {
	for _, id := range ids {
		if id != "" && checkName("", id, MaxName) == nil && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// Check reports what [Store.Import] refuses of an item.
func (i *Item) Check() error {
	if err := i.check(); err != nil {
		return err
	}
	for _, t := range []time.Time{i.CreatedAt, i.UpdatedAt, i.LastUsedAt} {
		if !t.IsZero() && (t.Year() < 1971 || t.Year() > 2261) { // the range of nanoseconds
			return invalidf("", "the time %s is out of range", t.UTC().Format(time.RFC3339))
		}
	}
	for _, id := range []string{i.ID, i.Supersedes, i.SupersededBy} {
		if _, err := ulid.ParseStrict(id); id != "" && (err != nil || id != strings.ToUpper(id)) {
			return invalidf("omit it, and the item gets one", "%q is not an id", id)
		}
	}
	if i.ID != "" && (i.ID == i.SupersededBy || i.ID == i.Supersedes) || i.Uses < 0 {
		return invalidf("", "the item supersedes itself, or has a negative number of uses")
	}
	return nil
}
