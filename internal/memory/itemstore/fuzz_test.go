package itemstore_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// FuzzText remembers any text, and asks for it by its own words and by any others. It
// is refused, or comes back as it was, is found by its words if it has any, is known
// when it is said again, and leaves nothing when it is forgotten.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"plain words", "Größe naïve ÉTÉ", "東京都 パスワード", "order_id getUserName C++ C#", "\"; DROP TABLE x; --", "NEAR(a b) OR *", "12xword",
		"a\u0301\u0302 \u200d👩‍👩‍👧", "ﬁ ﬀ ǅ ŉ", "ΑΒΓ ς", "हिन्दी ภาษาไทย", strings.Repeat("x", 900), "\xff", "\x00", "...",
	} {
		f.Add(s, "other words")
		f.Add("some text", s)
	}
	s := open(f, storetest.SQLite(f), itemstore.Options{})
	view := everything("w")
	f.Fuzz(func(t *testing.T, text, asked string) {
		if _, err := search(t.Context(), s, view, asked, 5); err != nil {
			t.Fatalf("asked for %q: %v", asked, err)
		}
		b := itemstore.Batch{WorkspaceID: "w", Items: []itemstore.Item{fact(text)}, Restore: true}
		got, err := s.Remember(t.Context(), b)
		if sqldb.HasCode(err, itemstore.CodeInvalid) {
			if utf8.ValidString(text) && !strings.Contains(text, "\x00") && utf8.RuneCountInString(text) <= itemstore.MaxText && recall.Key(text) != "" {
				t.Errorf("%q was refused: %v", text, err)
			}
			return
		}
		if err != nil || got[0].Change != itemstore.Added {
			t.Fatalf("%q: %+v, %v", text, got, err)
		}
		id := got[0].Item.ID
		if item, err := s.Get(t.Context(), view, id); err != nil || item.Text != strings.TrimSpace(text) {
			t.Errorf("%q came back as %q, %v", text, item.Text, err)
		}
		terms, _ := recall.Index(text)
		found, err := s.Recall(t.Context(), view, recall.Read(text), time.Now())
		if err != nil || (len(found) == 1) != (len(terms) > 0) {
			t.Errorf("%q with the terms %v: %d found, %v", text, terms, len(found), err)
		}
		if again, err := s.Remember(t.Context(), b); err != nil || again[0].Change != itemstore.Known {
			t.Errorf("%q again: %+v, %v", text, again, err)
		}
		if removed, err := s.Forget(t.Context(), view, []string{id}); err != nil || len(removed.IDs) != 1 || removed.Lingering != nil {
			t.Errorf("%q: %+v, %v", text, removed, err)
		}
		if found, err := s.Recall(t.Context(), view, recall.Read(text), time.Now()); err != nil || len(found) != 0 {
			t.Errorf("%q is still known: %+v, %v", text, found, err)
		}
	})
}
