package itemstore

import (
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// Found is the answer to a recall.
type Found struct {
	// Ranked are the pinned items and the candidates, as [recall.Rank] orders them, for
	// [recall.Pick].
	Ranked []recall.Scored
	// Terms are those that were searched for.
	Terms []recall.Term
	// Candidates is how many items were ranked.
	Candidates int
}

// Hit is an item that was searched for and found.
type Hit struct {
	Item  Item
	Score float64
}

// Filter says which items of a view are listed. The zero value is all in effect.
type Filter struct {
	// Scope and ScopeID are those of the items; ScopeID needs a scope.
	Scope   Scope
	ScopeID string
	// Category is that of the items.
	Category turnpolicy.Category
	// History adds the items that others took the place of.
	History bool
}

// MaxPage is the most items of a page.
const MaxPage = 500

// Page says where a list goes on. The zero value is its beginning.
type Page struct {
	// Limit is the most items; 0 means 50.
	Limit int
	// After is what the page before gave as next.
	After string
	// OldestFirst turns the list round, as an export does.
	OldestFirst bool
}

// Removed is what became of a wish to forget.
type Removed struct {
	// IDs are the items that are gone: those that were named and in view, and the
	// versions that they had taken the place of.
	IDs []string
	// Lingering says why their bytes may still be in the files of the database, where
	// no query finds them: somebody was reading, say, so that SQLite's log could not be
	// emptied. The next forgetting tries again, and so does opening, for a short while.
	// It is nil where all is gone.
	Lingering error
}

// Stats are about the items in view.
type Stats struct {
	// Items are those in effect, History those that others took the place of.
	Items   int `json:"items"`
	History int `json:"history"`
	// Scopes and Categories count the items in effect.
	Scopes     map[Scope]int               `json:"scopes"`
	Categories map[turnpolicy.Category]int `json:"categories"`
	// Uses is how often they went into prompts.
	Uses int `json:"uses"`
	// Bytes is the size of the whole database, whoever's items they are.
	Bytes int64 `json:"bytes"`
	// Untidy says that bytes of forgotten items may still be in it: see
	// [Removed.Lingering].
	Untidy bool `json:"untidy,omitempty"`
}

// Imported counts what an import did.
type Imported struct {
	// Added are new here. Replaced are new here and took the place of others, which
	// were older.
	Added    int `json:"added"`
	Replaced int `json:"replaced"`
	// Known were here already.
	Known int `json:"known"`
	// Outdated were not kept: what is here is newer.
	Outdated int `json:"outdated"`
	// Forgotten were not kept: a person had them forgotten here.
	Forgotten int `json:"forgotten"`
}
