package store_test

import (
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
	s    *store.Store
	next int
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

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
		text := "Section " + strconv.Itoa(l.IntN(12)) // few, so that texts come again
		m.Sections[i].Hash = manifest.Hash(text, nil)
		if keptOnes {
			texts = append(texts, manifest.Text{Hash: m.Sections[i].Hash, Text: text})
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
		q.Terms = append(q.Terms, manifest.Term{Kind: "plugin", Value: "none"})
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
	return q
}

// plainly is what a search should find, by a look at each record.
func plainly(q *store.Query, all []*manifest.Manifest) store.SearchResult {
	threads := map[string]bool{}
	r := store.SearchResult{Records: []manifest.Index{}, Texts: []store.FoundText{}}
	for _, m := range all {
		if !matches(q, m) {
			continue
		}
		threads[m.WorkspaceID+"/"+m.ThreadID] = true
		x := m.Index()
		if len(m.Sections) == 0 {
			x.FingerprintFull = "" // as lists say it
		}
		r.Records = append(r.Records, x)
	}
	if r.Total, r.Threads = len(r.Records), len(threads); r.Total > 0 {
		first, last := r.Records[0], r.Records[r.Total-1]
		r.First, r.Last = &first, &last
	}
	if q.Limit > 0 {
		r.Records = r.Records[max(0, r.Total-q.Limit):]
	}
	return r
}

func matches(q *store.Query, m *manifest.Manifest) bool {
	terms := m.Terms()
	lacks := func(t manifest.Term) bool { return !slices.Contains(terms, t) }
	return !slices.ContainsFunc(q.Terms, lacks) && (q.Workspace == "" || m.WorkspaceID == q.Workspace) && (q.Thread == "" || m.ThreadID == q.Thread) &&
		!m.CreatedAt.Before(q.Since) && (q.Until.IsZero() || m.CreatedAt.Before(q.Until))
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
		if diff := cmp.Diff(got, plainly(&q, all)); diff != "" {
			l.t.Fatalf("%s, %+v (-got +want):\n%s", when, q, diff)
		}
	}
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
		l := &randomLog{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), t: t, s: open(t, x.newDSN(t), normal())}
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
			queries := []store.Query{{Since: epoch()}, {Terms: term("plugin", "plugin-1")}}
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
