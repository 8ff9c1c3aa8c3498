package toolset

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// MaxAnswer is the most characters of an answer.
const MaxAnswer = 8_000

// maxPreview is the most characters of a text among what matches a wish to forget.
const maxPreview = 200

// Entry is a memory as search and list show it.
type Entry struct {
	ID       string              `json:"id"`
	Scope    itemstore.Scope     `json:"scope"`
	ScopeID  string              `json:"scope_id,omitempty"`
	Category turnpolicy.Category `json:"category"`
	Text     string              `json:"text"`
	// UpdatedAt is when it was stored, or last said again.
	UpdatedAt time.Time `json:"updated_at"`
	Uses      int       `json:"uses,omitempty"`
	// Score says how well it fits a query.
	Score float64 `json:"score,omitempty"`
}

// Detail is a whole memory.
type Detail struct {
	Entry

	WorkspaceID  string           `json:"workspace_id,omitempty"`
	Evidence     string           `json:"evidence,omitempty"`
	Source       itemstore.Source `json:"source"`
	Slot         string           `json:"slot,omitempty"`
	CreatedAt    time.Time        `json:"created_at"`
	LastUsedAt   time.Time        `json:"last_used_at,omitzero"`
	Supersedes   string           `json:"supersedes,omitempty"`
	SupersededBy string           `json:"superseded_by,omitempty"`
}

// Hits is the answer of memory_search.
type Hits struct {
	Items []Entry `json:"items"`
	// LeftOut is how many more there are that had no room.
	LeftOut int `json:"left_out,omitempty"`
}

// Page is the answer of memory_list.
type Page struct {
	Items []Entry `json:"items"`
	// Next is the cursor of the page behind this one; empty at the end.
	Next string `json:"next,omitempty"`
}

// Whole is the answer of memory_get.
type Whole struct {
	Item Detail `json:"item"`
	// Shortened says that there was no room for all of its texts.
	Shortened bool `json:"shortened,omitempty"`
}

// Stored is the answer of memory_remember.
type Stored struct {
	Change itemstore.Change `json:"change"`
	ID     string           `json:"id,omitempty"`
	// Replaced are the ids of the memories that it took the place of.
	Replaced []string `json:"replaced,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Matches is the first answer of memory_forget to a query. Nothing is forgotten yet.
type Matches struct {
	Matches []Entry `json:"matches"`
	// Count is how many would be forgotten; with everything they are not all shown.
	Count        int    `json:"count"`
	Confirmation string `json:"confirmation,omitempty"`
	Message      string `json:"message"`
}

// Forgotten is the answer of memory_forget when memories are gone.
type Forgotten struct {
	Count int `json:"count"`
	// IDs are those that are gone, older versions included, as far as there is room.
	IDs []string `json:"ids"`
	// More says that there were more than one call forgets.
	More bool `json:"more,omitempty"`
	// Lingering says why their bytes are not gone from the disk yet.
	Lingering string `json:"lingering,omitempty"`
}

// Refusal is the answer of a call that was not made. It is an error to the model.
type Refusal struct {
	// Error is what happened, in a sentence.
	Error string `json:"error"`
	// ReasonCode is why, in a word; with a turn's policy it is the policy's.
	ReasonCode string `json:"reason_code"`
}

// EntryOf is an item as search and list show it.
func EntryOf(i *itemstore.Item) Entry {
	return Entry{ID: i.ID, Scope: i.Scope, ScopeID: i.ScopeID, Category: i.Category, Text: i.Text, UpdatedAt: i.UpdatedAt, Uses: i.Uses}
}

// AnswerSearch shows as many of the hits as have room, the best first. There were left
// others besides.
func AnswerSearch(hits []itemstore.Hit, left int) (json.RawMessage, error) {
	all := make([]Entry, len(hits))
	for i := range hits {
		all[i] = EntryOf(&hits[i].Item)
		all[i].Score = hits[i].Score
	}
	raw, _, err := fit(len(all), func(n int) any { return Hits{Items: all[:n], LeftOut: len(all) - n + left} })
	return raw, err
}

// AnswerList shows a page of items. It also returns how many of them have room; if
// these are not all, next does not fit them, and the caller asks for so many.
func AnswerList(items []itemstore.Item, next string) (raw json.RawMessage, shown int, err error) {
	all := entries(items)
	return fit(len(all), func(n int) any { return Page{Items: all[:n], Next: next} })
}

// AnswerGet shows an item whole, or as much of its texts as there is room for.
func AnswerGet(i *itemstore.Item) (json.RawMessage, error) {
	d := Detail{
		Entry: EntryOf(i), WorkspaceID: i.WorkspaceID, Evidence: i.Evidence, Source: i.Source, Slot: i.Slot,
		CreatedAt: i.CreatedAt, LastUsedAt: i.LastUsedAt, Supersedes: i.Supersedes, SupersededBy: i.SupersededBy,
	}
	evidence, text := utf8.RuneCountInString(d.Evidence), utf8.RuneCountInString(d.Text)
	raw, _, err := fit(evidence+text, func(n int) any {
		short := d
		if n < evidence+text {
			// The text goes before the evidence.
			short.Text, _ = recall.Cut(d.Text, n)
			short.Evidence, _ = recall.Cut(d.Evidence, n-text)
		}
		return Whole{Item: short, Shortened: n < evidence+text}
	})
	return raw, err
}

// AnswerRemember says what became of a new memory.
func AnswerRemember(o *itemstore.Outcome) (json.RawMessage, error) {
	s := Stored{Change: o.Change, ID: o.Item.ID, Replaced: o.Replaced}
	switch o.Change {
	case itemstore.Forgotten:
		s.Message = "The user once had this forgotten, so it was not stored. It is stored again if they ask for it in so many words."
	case itemstore.Known:
		s.Message = "This is remembered already."
	case itemstore.Added, itemstore.Replaced:
	}
	return encode(s)
}

// Ask is what memory_forget says beside the memories that match.
type Ask struct {
	// Count is how many would be forgotten, which may be more than there is room to show.
	Count int
	// Confirmation is what a call that forgets them has to give.
	Confirmation string
	// More says that there are others beside them, for a later call.
	More bool
	// Stale says that the caller gave a confirmation, and that it is for others.
	Stale bool
}

// Preview picks those of what matches a wish to forget that an answer can show whatever
// else it says. They are what its confirmation is for.
func Preview(items []itemstore.Item) (shown []itemstore.Item, err error) {
	all := previews(items)
	longest := Ask{Count: len(items), Confirmation: strings.Repeat("x", maxID), More: true, Stale: true}
	_, n, err := fit(len(all), func(n int) any { return longest.about(all[:n]) })
	return items[:n], err
}

// AnswerMatches shows what would be forgotten, as far as there is room.
func AnswerMatches(items []itemstore.Item, ask Ask) (json.RawMessage, error) {
	all := previews(items)
	raw, _, err := fit(len(all), func(n int) any { return ask.about(all[:n]) })
	return raw, err
}

// about is the answer with some entries.
func (a Ask) about(list []Entry) Matches {
	if a.Count == 0 {
		return Matches{Matches: list, Message: "Nothing that is remembered matches."}
	}
	m := Matches{Matches: list, Count: a.Count, Confirmation: a.Confirmation, Message: "Nothing is forgotten yet. " +
		"If all of these are to be forgotten, call again with the same arguments and this confirmation; if only some, call with their ids."}
	if a.Stale {
		m.Message = "The confirmation is not for these, which match now. " + m.Message
	}
	if a.More {
		m.Message += " There are more of them: call again after that."
	}
	return m
}

// AnswerForget says what is gone. More says that there were more than one call takes.
func AnswerForget(r itemstore.Removed, more bool) (json.RawMessage, error) {
	why := ""
	if r.Lingering != nil {
		why, _ = recall.Cut(r.Lingering.Error(), maxQuery)
	}
	raw, _, err := fit(len(r.IDs), func(n int) any {
		return Forgotten{Count: len(r.IDs), IDs: append([]string{}, r.IDs[:n]...), More: more, Lingering: why}
	})
	return raw, err
}

// AnswerRefusal says why a call was not made.
func AnswerRefusal(code, message string) (json.RawMessage, error) {
	message, _ = recall.Cut(message, maxQuery)
	code, _ = recall.Cut(code, maxCursor)
	return encode(Refusal{Error: message, ReasonCode: code})
}

// Confirmation is the fingerprint of some memories of a workspace, whatever their
// order.
func Confirmation(workspace string, items []itemstore.Item) string {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	slices.Sort(ids)
	data, err := json.Marshal(append([]string{"forget", workspace}, ids...))
	if err != nil {
		return "" // a list of texts is always JSON
	}
	sum := sha256.Sum256(data)
	return "forget-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// entries are items as a list shows them.
func entries(items []itemstore.Item) []Entry {
	all := make([]Entry, len(items))
	for i := range items {
		all[i] = EntryOf(&items[i])
	}
	return all
}

// previews are entries whose texts are shortened.
func previews(items []itemstore.Item) []Entry {
	all := entries(items)
	for i := range all {
		all[i].Text, _ = recall.Cut(all[i].Text, maxPreview)
	}
	return all
}

// fit encodes the answer with the largest of the numbers from 0 to most that keeps it
// within MaxAnswer. An answer must not get longer with a smaller number.
func fit(most int, answer func(n int) any) (raw json.RawMessage, n int, err error) {
	try := func(n int) json.RawMessage {
		data, failed := encode(answer(n))
		if failed != nil {
			err = failed
		}
		return data
	}
	if raw = try(most); err != nil || utf8.RuneCount(raw) <= MaxAnswer {
		return raw, most, err
	}
	n = sort.Search(most, func(i int) bool { return utf8.RuneCount(try(i+1)) > MaxAnswer })
	return try(n), n, err
}

// encode is JSON that leaves "<", ">" and "&" as they are: models read it.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
