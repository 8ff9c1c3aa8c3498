package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// ids are the places of samples, by their ids.
func found(t *testing.T, s *store.Store, q store.Query) []int {
	t.Helper()
	r, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	list := []int{}
	for _, x := range r.Records {
		var n int
		if _, err := fmt.Sscanf(x.TurnID, "turn-%d", &n); err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	if q.Limit == 0 && r.Total != len(list) {
		t.Errorf("a total of %d, and %d are listed", r.Total, len(list))
	}
	return list
}

func term(kind manifest.TermKind, value string) []manifest.Term {
	return []manifest.Term{{Kind: kind, Value: value}}
}

// testSearch: terms alone and together, indexed and not yet, within a workspace, a thread and a time.
func (x suite) testSearch(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	put := func(from, to int) {
		for n := from; n < to; n++ {
			m := sample("w"+string(rune('0'+n%2)), "t", n)
			m.Actor = fmt.Sprintf("actor-%d", n%10)
			m.Plugins = append(m.Plugins, phases.PluginRow{Plugin: "house", Version: fmt.Sprintf("1.%d", n/100), SHA256: "builtin"})
			keep(t, s, m)
		}
	}
	every := func(from, to, step int) []int {
		list := []int{}
		for n := from; n < to; n += step {
			list = append(list, n)
		}
		return list
	}
	put(0, 300) // some are settled
	tests := []struct {
		name string
		q    store.Query
		want []int
	}{
		{"plugin", store.Query{Terms: term("plugin", "house")}, every(0, 300, 1)},
		{"version", store.Query{Terms: term("plugin", "house@1.2")}, every(200, 300, 1)},
		{"two terms", store.Query{Terms: append(term("plugin", "house@1.2"), term("actor", "actor-3")...)}, every(203, 300, 10)},
		{"no such", store.Query{Terms: term("plugin", "house@2")}, []int{}},
		{"the value of another kind", store.Query{Terms: term("actor", "house")}, []int{}},
		{"workspace", store.Query{Filter: store.Filter{Workspace: "w1"}, Terms: term("plugin", "house@1.0")}, every(1, 100, 2)},
		{"thread", store.Query{Filter: store.Filter{Thread: "u"}}, []int{}},
		{"newest", store.Query{Filter: store.Filter{Limit: 2}, Terms: term("actor", "actor-7")}, []int{287, 297}},
		{"time", store.Query{Since: epoch().Add(250 * time.Second), Until: epoch().Add(253 * time.Second)}, []int{250, 251, 252}},
		{"far times", store.Query{Since: epoch().AddDate(-1000, 0, 0), Until: epoch().AddDate(1000, 0, 0), Terms: term("turn", "turn-7")}, []int{7}},
		{"in the far future", store.Query{Since: epoch().AddDate(1000, 0, 0)}, []int{}},
		{"in the far past", store.Query{Until: epoch().AddDate(-1000, 0, 0)}, []int{}},
		{"time and term", store.Query{Since: epoch().Add(95 * time.Second), Terms: term("plugin", "house@1.0")}, every(95, 100, 1)},
		{"hash", store.Query{Terms: term("hash", manifest.Fingerprint("the prompt", nil))}, every(0, 300, 1)},
	}
	for range 2 {
		for _, tt := range tests {
			if diff := cmp.Diff(found(t, s, tt.q), tt.want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", tt.name, diff)
			}
		}
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Prune(t.Context(), store.Retention{Count: 10}, epoch()); err != nil {
		t.Fatal(err)
	}
	if got, want := found(t, s, store.Query{Terms: term("plugin", "house")}), every(280, 300, 1); cmp.Diff(got, want) != "" {
		t.Errorf("after retention %v, want %v", got, want)
	}
}

// testSearchTermsGo: retention leaves no terms of records that are gone.
func (x suite) testSearchTermsGo(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 256)
	size := "SELECT sum(length(terms::text)) FROM record_terms"
	if strings.HasPrefix(dsn, "sqlite") {
		size = "SELECT sum(length(block)) FROM record_terms_data"
	}
	indexed := func() (bytes int) {
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), size).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	before := indexed()
	if _, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch()); err != nil {
		t.Fatal(err)
	}
	if after := indexed(); after*10 > before {
		t.Errorf("of %d bytes %d are left, want the terms of the last record", before, after)
	}
}

// testForgedSentence: a text that was changed after it was kept is attributed to nobody.
func (x suite) testForgedSentence(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	text := "what the desk said"
	m := sample("w", "t", 0)
	m.Sections = m.Sections[:1]
	m.Sections[0].Hash = manifest.Hash(text, nil)
	keep(t, s, m, manifest.Text{Hash: m.Sections[0].Hash, Text: text})
	if got := found(t, s, store.Query{Sentence: "the desk"}); len(got) != 1 {
		t.Errorf("found in %v", got)
	}
	storetest.Exec(t, dsn, "UPDATE texts SET text = 'what the desk never said'")
	for _, sentence := range []string{"desk never said", "the desk"} {
		r, err := s.Search(t.Context(), store.Query{Sentence: sentence})
		if err != nil || r.Total != 0 || len(r.Texts) != 0 {
			t.Errorf("%q is found in %+v, %v", sentence, r.Texts, err)
		}
	}
}

// testSentence: who wrote a sentence, in which prompts.
func (x suite) testSentence(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	put := func(n int, body, owner string) {
		m := sample("w", "t", n)
		rendered := "## Rules\n\n" + body
		m.Sections = []manifest.Section{{
			SectionID: "rules", Title: "Rules", Stability: phases.StabilityStable, Placement: phases.PlacementSystem, Owner: "house",
			Chars: len([]rune(body)), OriginalChars: len([]rune(body)),
			Fingerprint: manifest.Fingerprint(rendered, nil), Hash: manifest.Hash(rendered, nil),
			ContentMap: []manifest.Span{
				{Offset: 0, Length: 10, Owner: "house", ContributionID: "a"},
				{Offset: 10, Length: 2, Owner: phases.OwnerBuiltin},
				{Offset: 12, Length: len([]rune(body)) - 12, Owner: owner, ContributionID: "b"},
			},
		}}
		keep(t, s, m, manifest.Text{Hash: m.Sections[0].Hash, Text: rendered})
	}
	put(0, "Be polite.\n\nOffer no discount,\nnever. 割引はしません。", "desk")
	put(1, "Be polite.\n\nOffer a discount. It's 5% off!", "sales")
	put(2, "Be polite.\n\nOffer no discount,\nnever. 割引はしません。", "desk")
	put(3, "Be polite.\n\nमुझे हिन्दी आती है। שָׁלוֹם עוֹלָם טוֹב สวัสดีครับ か\u3099ある", "desk")
	tests := []struct {
		sentence string
		want     []int
		owners   []string
	}{
		{"Offer no discount, never.", []int{0, 2}, []string{"desk"}},
		{"ffer no discount, nev", []int{0, 2}, []string{"desk"}},
		{"offer no discount", []int{}, nil},
		{"Offer", []int{0, 1, 2}, nil},
		{"Off", []int{0, 1, 2}, nil},
		{"polite. Offer", []int{0, 1, 2}, nil},
		{"Be polite.", []int{0, 1, 2, 3}, []string{"house"}},
		{"割引はし", []int{0, 2}, []string{"desk"}},
		{"引は", []int{0, 2}, []string{"desk"}},
		{"It's 5% off!", []int{1}, []string{"sales"}},
		{"Rules", []int{0, 1, 2, 3}, []string{"house"}},
		{"nothing of the kind", []int{}, nil},
		{"मुझे हिन्दी आती है", []int{3}, []string{"desk"}},
		{"שָׁלוֹם עוֹלָם טוֹב", []int{3}, []string{"desk"}},
		{"สวัสดีครับ", []int{3}, []string{"desk"}},
		{"か\u3099ある", []int{3}, []string{"desk"}},
		{`" OR "offer`, []int{}, nil},
		{"' | 'offer", []int{}, nil},
	}
	for range 2 {
		for _, tt := range tests {
			if diff := cmp.Diff(found(t, s, store.Query{Sentence: tt.sentence}), tt.want); diff != "" {
				t.Errorf("%q (-got +want):\n%s", tt.sentence, diff)
			}
			r, err := s.Search(t.Context(), store.Query{Sentence: tt.sentence})
			if err != nil || tt.owners != nil && (len(r.Texts) == 0 || cmp.Diff(r.Texts[0].Owners, tt.owners) != "" || r.Texts[0].SectionID != "rules") {
				t.Errorf("%q: %+v, %v, want it from %v", tt.sentence, r.Texts, err, tt.owners)
			}
		}
		for words, want := range map[string][]int{"discount offer no": {0, 2}, "POLITE never, offer": {0, 2}, "never disc": {0, 2}, "disc never": {}, "Offer no discount, never.": {0, 2}} {
			if diff := cmp.Diff(found(t, s, store.Query{Sentence: words, AnyOrder: true}), want); diff != "" {
				t.Errorf("%q in any order (-got +want):\n%s", words, diff)
			}
		}
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, sentence := range []string{"?!", " ", "\u2028", "*", "\x00", "\U0001f4a3"} {
		if _, err := s.Search(t.Context(), store.Query{Sentence: sentence}); !store.HasCode(err, store.CodeInvalid) {
			t.Errorf("the sentence %q without words: %v", sentence, err)
		}
	}
	if _, err := s.Search(t.Context(), store.Query{Sentence: "a\x00b \xff c", Terms: term("actor", "\x00\xff")}); err != nil && !store.HasCode(err, store.CodeInvalid) {
		t.Errorf("what is not text: %v", err)
	}
	if _, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch()); err != nil {
		t.Fatal(err)
	}
	if got := found(t, s, store.Query{Sentence: "It's 5% off!"}); len(got) != 0 {
		t.Errorf("a text that is gone is found in %v", got)
	}
	if got := found(t, s, store.Query{Sentence: "हिन्दी आती"}); cmp.Diff(got, []int{3}) != "" {
		t.Errorf("the text that is left is found in %v", got)
	}
	erase(t, s, store.Erasing{Scope: store.Scope{WorkspaceID: "w"}})
	if got := found(t, s, store.Query{Sentence: "हिन्दी आती"}); len(got) != 0 {
		t.Errorf("an erased text is found in %v", got)
	}
}
