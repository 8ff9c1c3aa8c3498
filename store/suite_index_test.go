package store_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// randomLog is a log that random things are done to.
type randomLog struct {
	*rand.Rand

	t    *testing.T
	raw  *sql.DB
	s    *store.Store
	next int
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// body is some words: few, so that texts come again.
func (l *randomLog) body() string {
	return oneOf(l.Rand, "Be", "Never", "Always") + " " + oneOf(l.Rand, "polite", "brief") + ",\n" + oneOf(l.Rand, "to all.", "to each other.", "and 割引は fair.")
}

func (l *randomLog) record() (*manifest.Manifest, []manifest.Text) {
	m := sample(oneOf(l.Rand, "v", "w"), oneOf(l.Rand, "a", "b", "c"), l.next)
	l.next++
	m.CreatedAt = epoch().Add(time.Duration(l.IntN(500)-l.IntN(500)) * time.Minute) // clocks differ
	m.Actor, m.SessionID, m.AgentID = oneOf(l.Rand, "", "x", "y"), strconv.Itoa(l.IntN(40)), oneOf(l.Rand, "", "agent")
	m.Cache.Model, m.Cache.Provider = oneOf(l.Rand, "", "m1", "m2"), oneOf(l.Rand, "", "p")
	m.Plugins = append(m.Plugins, phases.PluginRow{Plugin: oneOf(l.Rand, "house", "barn"), Version: strconv.Itoa(l.IntN(3)), SHA256: "builtin"})
	m.Sections = m.Sections[:1+l.IntN(3)]
	var texts []manifest.Text
	keptOnes := l.IntN(3) > 0
	for i := range m.Sections {
		section, body := &m.Sections[i], l.body()
		rendered := "## " + section.Title + "\n\n" + body
		section.Owner = oneOf(l.Rand, "desk", "sales")
		section.Hash = manifest.Hash(rendered, nil)
		section.Chars, section.OriginalChars = len([]rune(body)), len([]rune(body))
		section.ContentMap = []manifest.Span{{Offset: 0, Length: len([]rune(body)), Owner: section.Owner, ContributionID: "c"}}
		if keptOnes {
			texts = append(texts, manifest.Text{Hash: section.Hash, Text: rendered})
		}
	}
	return m, texts
}

// query asks for terms of a random record, and some that it lacks.
func (l *randomLog) query(all []*manifest.Manifest) store.Query {
	var q store.Query
	if len(all) > 0 {
		terms := oneOf(l.Rand, all...).Terms()
		for range l.IntN(3) {
			q.Terms = append(q.Terms, oneOf(l.Rand, terms...))
		}
	}
	if l.IntN(10) == 0 {
		q.Terms = append(q.Terms, manifest.Term{Kind: manifest.TermPlugin, Value: "none"})
	}
	q.Workspace, q.Thread = oneOf(l.Rand, "", "", "v"), oneOf(l.Rand, "", "", "a")
	q.Limit = oneOf(l.Rand, 0, 0, 1, 5)
	at := func() time.Time { return epoch().Add(time.Duration(l.IntN(1000)-500) * time.Minute) }
	if l.IntN(3) == 0 {
		q.Since = at()
	}
	if l.IntN(3) == 0 {
		q.Until = at()
	}
	switch l.IntN(4) {
	case 0:
		q.Sentence = oneOf(l.Rand, "Be polite", "polite, to", "brief, to each", "割引", "Section 1", "er polite, to all.", "fair and", "to each oth")
	case 1:
		q.Text = fmt.Sprintf("## Section %d — Überblick\n\n", l.IntN(2)) + l.body()
	}
	return q
}

// plainly is what a search should find, by a look at each record.
func (l *randomLog) plainly(q *store.Query, all []*manifest.Manifest) store.SearchResult {
	l.t.Helper()
	var match []*manifest.Manifest
	threads := map[string]bool{}
	holding := l.holding(q)
	for _, m := range all {
		if l.matches(q, m, holding) {
			match = append(match, m)
			threads[m.WorkspaceID+"/"+m.ThreadID] = true
		}
	}
	r := store.SearchResult{Total: len(match), Threads: len(threads), Records: []manifest.Index{}, Texts: []store.FoundText{}}
	for _, m := range match {
		x := m.Index()
		if len(m.Sections) == 0 {
			x.FingerprintFull = "" // as lists say it
		}
		r.Records = append(r.Records, x)
	}
	if len(match) > 0 {
		first, last := r.Records[0], r.Records[len(match)-1]
		r.First, r.Last = &first, &last
	}
	if q.Limit > 0 {
		r.Records = r.Records[max(0, len(match)-q.Limit):]
	}
	seen := map[string]bool{}
	for _, m := range slices.Backward(match) {
		for i := range m.Sections {
			if x := &m.Sections[i]; holding[x.Hash] && !seen[x.Hash] {
				seen[x.Hash] = true
				r.Texts = append(r.Texts, store.FoundText{SectionID: x.SectionID, Fingerprint: x.Fingerprint, Hash: x.Hash, ManifestID: m.ManifestID})
			}
		}
	}
	return r
}

// holding are the kept texts with a sentence, by their hashes: those of a workspace, if one is given.
func (l *randomLog) holding(q *store.Query) map[string]bool {
	l.t.Helper()
	found := map[string]bool{}
	const query = `SELECT t.hash, t.text FROM texts t JOIN text_uses u ON u.text_id = t.id JOIN chains c ON c.id = u.chain_id
		WHERE $1 = '' OR c.workspace_id = $1`
	rows, err := l.raw.QueryContext(l.t.Context(), query, q.Workspace)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var hash, text string
		if err := rows.Scan(&hash, &text); err != nil {
			l.t.Fatal(err)
		}
		if q.Sentence != "" && strings.Contains(strings.Join(strings.Fields(text), " "), q.Sentence) {
			found[hash] = true
		}
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	return found
}

func (l *randomLog) matches(q *store.Query, m *manifest.Manifest, holding map[string]bool) bool {
	terms := m.Terms()
	has := func(t manifest.Term) bool { return slices.Contains(terms, t) }
	isHash := func(value string) bool { return has(manifest.Term{Kind: manifest.TermHash, Value: value}) }
	for _, t := range q.Terms {
		if !has(t) {
			return false
		}
	}
	switch {
	case q.Workspace != "" && m.WorkspaceID != q.Workspace, q.Thread != "" && m.ThreadID != q.Thread,
		!q.Since.IsZero() && m.CreatedAt.Before(q.Since), !q.Until.IsZero() && !m.CreatedAt.Before(q.Until),
		q.Text != "" && !isHash(manifest.Hash(q.Text, nil)):
		return false
	case q.Sentence == "" || isHash(manifest.Hash(q.Sentence, nil)):
		return true
	}
	return slices.ContainsFunc(m.Sections, func(s manifest.Section) bool { return holding[s.Hash] })
}

// check compares searches with a look at each record.
func (l *randomLog) check(when string) {
	l.t.Helper()
	all, err := l.s.Manifests(l.t.Context(), store.Filter{})
	if err != nil {
		l.t.Fatal(err)
	}
	for range 5 {
		q := l.query(all)
		got, err := l.s.Search(l.t.Context(), q)
		if err != nil {
			l.t.Fatalf("%s, %+v: %v", when, q, err)
		}
		want := l.plainly(&q, all)
		l.checkTexts(&got, &want)
		if diff := cmp.Diff(got, want); diff != "" {
			l.t.Fatalf("%s, %+v (-got +want):\n%s", when, q, diff)
		}
	}
}

// checkTexts compares which texts were found by their number: writers that are the same share an entry.
func (l *randomLog) checkTexts(got, want *store.SearchResult) {
	l.t.Helper()
	n := 0
	for _, text := range got.Texts {
		n += text.Texts
	}
	if n != len(want.Texts) || n > 0 && (got.Texts[0].ManifestID != want.Texts[0].ManifestID) {
		l.t.Errorf("%d texts, %+v, want %d, %+v", n, got.Texts, len(want.Texts), want.Texts)
	}
	got.Texts, want.Texts = nil, nil
}

// act does one random thing, and says what.
func (l *randomLog) act() string {
	l.t.Helper()
	var err error
	var what string
	switch n := l.IntN(100); {
	case n < 60:
		what = "append"
		for range 1 + l.IntN(12) {
			m, texts := l.record()
			keep(l.t, l.s, m, texts...)
		}
	case n < 75:
		what = "settle"
		err = l.s.SettleOnly(l.t.Context())
	case n < 85:
		what = "settle all"
		err = l.s.Settle(l.t.Context())
	case n < 92:
		what = "erase"
		_, err = l.s.Erase(l.t.Context(), store.Erasing{Scope: store.Scope{ThreadID: oneOf(l.Rand, "a", "b"), Actor: oneOf(l.Rand, "", "x")}, By: "me", Reason: "test"})
	default:
		what = "prune"
		rule := oneOf(l.Rand, store.Retention{Count: 5 + l.IntN(30)}, store.Retention{Age: time.Duration(l.IntN(500)) * time.Minute},
			store.Retention{Workspaces: map[string]store.Retention{"v": {Count: 1 + l.IntN(5)}}})
		_, err = l.s.Prune(l.t.Context(), rule, epoch())
	}
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
	return what
}

// testIndex: whatever is done to a log, a search finds what a look at each record finds.
func (x suite) testIndex(t *testing.T) {
	logs, acts := 1, 30
	if storetest.Long() {
		logs, acts = 10, 200
	}
	for seed := range logs {
		dsn := x.newDSN(t)
		l := &randomLog{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), t: t, s: open(t, dsn, normal()), raw: storetest.Raw(t, dsn)}
		l.s.StopSettling()
		for n := range acts {
			l.check(fmt.Sprintf("log %d, after %d acts, the last one %s", seed, n, l.act()))
		}
	}
}

// testIndexTampered: what somebody has done to the index is refused, by searches or when it is written to, and appends go on.
func (x suite) testIndexTampered(t *testing.T) {
	statements := map[string]string{"indexed twice": "INSERT INTO pending (id) SELECT id FROM manifests WHERE seq < 9"}
	if strings.HasPrefix(x.newDSN(t), "sqlite") {
		statements["cut off"] = "UPDATE record_terms_data SET block = substr(block, 1, 5)"
		statements["emptied"] = "DELETE FROM record_terms_data"
		statements["words emptied"] = "DELETE FROM text_words_data"
	}
	for name, statement := range statements {
		t.Run(name, func(t *testing.T) {
			dsn := x.newDSN(t)
			s := open(t, dsn, normal())
			s.StopSettling()
			fillThread(t, s, "w", "t", 0, 9)
			if err := s.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			fillThread(t, s, "w", "t", 9, 10)
			storetest.Exec(t, dsn, statement)
			queries := []store.Query{{Since: epoch()}, {Terms: term(manifest.TermPlugin, "plugin-1")}}
			for _, q := range queries {
				if _, err := s.Search(t.Context(), q); err != nil && !store.HasCode(err, store.CodeDamaged) {
					t.Errorf("%v, want the code %s", err, store.CodeDamaged)
				}
			}
			keep(t, s, sample("w", "t", 10), sampleTexts()...)
			if err := s.Settle(t.Context()); err != nil {
				t.Errorf("settling does not make the index again: %v", err)
			}
			if _, err := s.Prune(t.Context(), store.Retention{Count: 100}, epoch()); err != nil {
				t.Errorf("retention does not make the index again: %v", err)
			}
			for _, q := range queries {
				if r, err := s.Search(t.Context(), q); err != nil || r.Total != 11 || r.Threads != 1 {
					t.Errorf("afterwards %+v finds %d, %v", q.Terms, r.Total, err)
				}
			}
			wantGood(t, s, 11)
		})
	}
}
