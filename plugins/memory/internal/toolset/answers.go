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

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk"
)

// MaxAnswer bounds an answer, in characters.
const MaxAnswer = 8_000

const (
	maxPreview = 200 // characters of a text among the matches of memory_forget
	maxMessage = 500 // of an error
	maxCode    = 200 // of a reason code
)

// Entry is a memory as search and list show it.
type Entry struct {
	ID        string              `json:"id"`
	Scope     itemstore.Scope     `json:"scope"`
	ScopeID   string              `json:"scope_id,omitempty"`
	Category  turnpolicy.Category `json:"category"`
	Text      string              `json:"text"`
	UpdatedAt time.Time           `json:"updated_at"` // when it was stored or last confirmed
	Uses      int                 `json:"uses,omitempty"`
	Score     float64             `json:"score,omitempty"` // how well it matches a query
}

// Hits is the answer of memory_search.
type Hits struct {
	Items   []Entry `json:"items"`
	Omitted int     `json:"omitted,omitempty"` // how many more did not fit
}

// Page is the answer of memory_list.
type Page struct {
	Items []Entry `json:"items"`
	Next  string  `json:"next,omitempty"` // the cursor of the next page; empty at the end
}

// Whole is the answer of memory_get.
type Whole struct {
	Item      itemstore.Item `json:"item"`
	Shortened bool           `json:"shortened,omitempty"` // its texts did not fit
}

// Stored is the answer of memory_remember.
type Stored struct {
	Change   itemstore.Change `json:"change"`
	ID       string           `json:"id,omitempty"`
	Replaced []string         `json:"replaced,omitempty"` // ids of the memories that it replaced
	Message  string           `json:"message,omitempty"`
}

// Matches is the first answer of memory_forget to a query. Nothing is forgotten yet.
type Matches struct {
	Matches      []Entry `json:"matches"`
	Count        int     `json:"count"` // how many would be forgotten; not all may be shown
	Confirmation string  `json:"confirmation,omitempty"`
	Message      string  `json:"message"`
}

// Forgotten is the answer of memory_forget after forgetting.
type Forgotten struct {
	Count     int      `json:"count"`
	IDs       []string `json:"ids"`                 // that are gone, older versions included, as far as they fit
	More      bool     `json:"more,omitempty"`      // there were more than one call forgets
	Lingering string   `json:"lingering,omitempty"` // why their bytes are not gone from the disk yet
}

// Refusal is the answer to a refused call. It is an error for the model.
type Refusal struct {
	Error      string `json:"error"`       // what happened, in a sentence
	ReasonCode string `json:"reason_code"` // why, in a word; if a turn's policy decided, it is the policy's
}

func entryOf(i *itemstore.Item) Entry {
	return Entry{ID: i.ID, Scope: i.Scope, ScopeID: i.ScopeID, Category: i.Category, Text: i.Text, UpdatedAt: i.UpdatedAt, Uses: i.Uses}
}

// AnswerSearch shows as many of the hits as fit, the best first. omitted is how many the search dropped before.
func AnswerSearch(hits []itemstore.Hit, omitted int) (json.RawMessage, error) {
	all := make([]Entry, len(hits))
	for i := range hits {
		all[i] = entryOf(&hits[i].Item)
		all[i].Score = hits[i].Score
	}
	raw, _, err := fit(len(all), func(n int) any { return Hits{Items: all[:n], Omitted: len(all) - n + omitted} })
	return raw, err
}

// AnswerList shows a page of items, and returns how many of them fit. If some did not, next is wrong, and the caller
// should read a page of that size.
func AnswerList(items []itemstore.Item, next string) (raw json.RawMessage, shown int, err error) {
	all := entries(items)
	return fit(len(all), func(n int) any { return Page{Items: all[:n], Next: next} })
}

// AnswerGet shows an item whole, or as much of its texts as fits.
func AnswerGet(i *itemstore.Item) (json.RawMessage, error) {
	evidence, text := utf8.RuneCountInString(i.Evidence), utf8.RuneCountInString(i.Text)
	raw, _, err := fit(evidence+text, func(n int) any {
		short := *i
		if n < evidence+text {
			// The text has priority over the evidence.
			short.Text, _ = sdk.CutLine(i.Text, n)
			short.Evidence, _ = sdk.CutLine(i.Evidence, n-text)
		}
		return Whole{Item: short, Shortened: n < evidence+text}
	})
	return raw, err
}

// AnswerRemember says what happened to a new memory.
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
	Count        int    // how many would be forgotten, which may be more than fit into the answer
	Confirmation string // what the call that forgets them must give
	More         bool   // there are others, for a later call
	Stale        bool   // the caller gave a confirmation of other memories
}

// Preview returns the items that fit into the longest possible answer. The confirmation is for these.
func Preview(items []itemstore.Item) (shown []itemstore.Item, err error) {
	all := previews(items)
	longest := Ask{Count: len(items), Confirmation: strings.Repeat("x", 64), More: true, Stale: true}
	_, n, err := fit(len(all), func(n int) any { return longest.about(all[:n]) })
	return items[:n], err
}

// AnswerMatches shows what would be forgotten, as far as it fits.
func AnswerMatches(items []itemstore.Item, ask Ask) (json.RawMessage, error) {
	all := previews(items)
	raw, _, err := fit(len(all), func(n int) any { return ask.about(all[:n]) })
	return raw, err
}

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

// AnswerForget says what is gone. More says that one call could not take all.
func AnswerForget(r itemstore.Removed, more bool) (json.RawMessage, error) {
	why := ""
	if r.Lingering != nil {
		why, _ = sdk.CutLine(r.Lingering.Error(), maxMessage)
	}
	raw, _, err := fit(len(r.IDs), func(n int) any {
		return Forgotten{Count: len(r.IDs), IDs: append([]string{}, r.IDs[:n]...), More: more, Lingering: why}
	})
	return raw, err
}

// AnswerRefusal says why a call was refused.
func AnswerRefusal(code, message string) (json.RawMessage, error) {
	message, _ = sdk.CutLine(message, maxMessage)
	code, _ = sdk.CutLine(code, maxCode)
	return encode(Refusal{Error: message, ReasonCode: code})
}

// Confirmation returns the fingerprint of a workspace's memories, in any order.
func Confirmation(workspace string, items []itemstore.Item) string {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	slices.Sort(ids)
	data, _ := json.Marshal(append([]string{"forget", workspace}, ids...)) //nolint:errchkjson // texts always can
	sum := sha256.Sum256(data)
	return "forget-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

func entries(items []itemstore.Item) []Entry {
	all := make([]Entry, len(items))
	for i := range items {
		all[i] = entryOf(&items[i])
	}
	return all
}

func previews(items []itemstore.Item) []Entry {
	all := entries(items)
	for i := range all {
		all[i].Text, _ = sdk.CutLine(all[i].Text, maxPreview)
	}
	return all
}

// fit encodes the answer with the largest number up to most that keeps it within MaxAnswer. An answer must not get
// longer with a smaller number.
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

// encode keeps "<", ">" and "&": models read the JSON.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
