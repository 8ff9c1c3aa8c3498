package itemstore

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// CodeInvalid is what makes no sense in what a caller gave: too long, no UTF-8, a
// scope that there is not. Nothing was changed.
const CodeInvalid sqldb.Code = "invalid"

// maxKey is the most bytes of a batch's key.
const maxKey = 1000

func invalidf(remedy, format string, args ...any) error {
	return sqldb.Failf(CodeInvalid, remedy, format, args...)
}

// checkText refuses what no database takes: bytes that are not UTF-8, and NUL.
func checkText(what, text string) error {
	switch {
	case !utf8.ValidString(text):
		return invalidf("give UTF-8", "%s is not UTF-8", what)
	case strings.ContainsRune(text, 0):
		return invalidf("leave it out", "%s has the character NUL", what)
	}
	return nil
}

// checkName is checkText for what has a length in bytes.
func checkName(what, text string, most int) error {
	if len(text) > most {
		return invalidf("", "%s has %d bytes, %d are allowed", what, len(text), most)
	}
	return checkText(what, text)
}

// checkChars is checkText for what has a length in characters.
func checkChars(what, text string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return invalidf("shorten it", "%s has %d characters, %d are allowed", what, n, most)
	}
	return checkText(what, text)
}

// check refuses a batch that cannot be kept.
func (b *Batch) check() error {
	if len(b.Items) > MaxBatch {
		return invalidf("divide it", "a batch has %d items, %d are allowed", len(b.Items), MaxBatch)
	}
	if err := checkName("the id of the workspace", b.WorkspaceID, MaxName); err != nil {
		return err
	}
	if err := checkName("the key of the batch", b.Key, maxKey); err != nil {
		return err
	}
	for n := range b.Items {
		item := b.Items[n].item(b.WorkspaceID)
		err := item.check()
		if err == nil {
			err = checkName("the id to replace", b.Items[n].Replaces, MaxName)
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", n+1, err)
		}
	}
	return nil
}

// item is the item to be.
func (n *New) item(workspace string) Item {
	return Item{
		WorkspaceID: workspace, Scope: n.Scope, ScopeID: n.ScopeID, Category: n.Category, Text: strings.TrimSpace(n.Text),
		Evidence: n.Evidence, Source: n.Source, Slot: n.Slot,
	}
}

// check refuses an item that cannot be kept.
func (i *Item) check() error {
	switch {
	case !slices.Contains(Scopes(), i.Scope):
		return invalidf("", "there is no scope %q", i.Scope)
	case !slices.Contains(turnpolicy.Categories(), i.Category):
		return invalidf("", "there is no category %q", i.Category)
	case !slices.Contains(Sources(), i.Source):
		return invalidf("", "there is no source %q", i.Source)
	case (i.Scope == ScopeWorkspace) != (i.ScopeID == ""):
		return invalidf("a workspace's items have no id of a scope, all others have one", "the scope %s with the id %q", i.Scope, i.ScopeID)
	}
	for _, err := range []error{
		checkName("the id of the workspace", i.WorkspaceID, MaxName),
		checkName("the id of the scope", i.ScopeID, MaxName),
		checkName("the slot", i.Slot, MaxSlot),
		checkChars("the text", i.Text, MaxText),
		checkChars("the evidence", i.Evidence, MaxEvidence),
	} {
		if err != nil {
			return err
		}
	}
	if recall.Key(i.Text) == "" {
		return invalidf("", "the text says nothing")
	}
	return nil
}

// checkTimes refuses times that are not kept exactly.
func (i *Item) checkTimes() error {
	for _, t := range []time.Time{i.CreatedAt, i.UpdatedAt, i.LastUsedAt} {
		if !t.IsZero() && (t.Year() < 1971 || t.Year() > 2261) {
			return invalidf("", "the time %s is out of range", t.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// plainIDs returns those ids, each once, that can be of an item: the databases take
// no others.
func plainIDs(ids []string) []string {
	var list []string
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if checkName("", id, MaxName) == nil && id != "" && !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}

// Check reports what [Store.Import] refuses of an item. What an item may lack there, it
// may lack here.
func (i *Item) Check() error {
	if err := i.check(); err != nil {
		return err
	}
	if err := i.checkTimes(); err != nil {
		return err
	}
	return i.checkOrigin()
}

func (i *Item) checkOrigin() error {
	for _, id := range []string{i.ID, i.Supersedes, i.SupersededBy} {
		if _, err := ulid.ParseStrict(id); id != "" && (err != nil || id != strings.ToUpper(id)) {
			return invalidf("leave it out, and it gets one", "%q is no id", id)
		}
	}
	if i.ID != "" && (i.ID == i.SupersededBy || i.ID == i.Supersedes) || i.Uses < 0 {
		return invalidf("", "the item takes its own place, or was used less than never")
	}
	return nil
}
