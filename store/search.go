package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Query says what records to look for: those for which all holds that is set.
type Query struct {
	Filter

	// Terms are terms that a record has, all of them.
	Terms []manifest.Term
	// Sentence is a piece of a kept text. Blanks and line ends count as one blank, and case counts.
	Sentence string
	// AnyOrder also finds texts that have all words of the sentence, in any order and case.
	AnyOrder bool
	// Text is the text of a section with its heading, or of a whole prompt. It need not be kept: its hash is looked
	// for, plain and with the store's FingerprintKey.
	Text string
	// Since and Until bound created_at; Until does not belong to it.
	Since, Until time.Time
}

// SearchResult is what Search found.
type SearchResult struct {
	// Total is how many records there are, and Threads in how many threads they are; 0 for more than 50,000 records.
	Total   int `json:"total"`
	Threads int `json:"threads"`
	// First and Last are the first and the last of them in the order of appending; absent if there are none.
	First *manifest.Index `json:"first,omitempty"`
	Last  *manifest.Index `json:"last,omitempty"`
	// Records are the newest, newest last.
	Records []manifest.Index `json:"records"`
	// Texts say who wrote the sentence in which section, the newest first.
	Texts []FoundText `json:"texts"`
	// Incomplete says that only the newest 10,000 texts with the sentence were looked at.
	Incomplete bool `json:"incomplete,omitempty"`
}

// FoundText are kept texts that hold a sentence in the same section, from the same writers.
type FoundText struct {
	// SectionID is the section's id, or reminder, and Owners who wrote the sentence there.
	SectionID string   `json:"section_id"`
	Owners    []string `json:"owners"`
	// Texts is how many different texts these are, Fingerprint and Hash are those of the newest, and ManifestID is a record
	// that has it.
	Texts       int    `json:"texts"`
	Fingerprint string `json:"fingerprint"`
	Hash        string `json:"hash"`
	ManifestID  string `json:"manifest_id"`
}

// maxTexts bounds the texts that hold a sentence.
const maxTexts = 10_000

// Search looks for records, in one state of the database. A limit of 0 lists all. Records that are not indexed yet are
// read.
func (s *Store) Search(ctx context.Context, q Query) (SearchResult, error) {
	result := SearchResult{Records: []manifest.Index{}, Texts: []FoundText{}}
	if q.Sentence != "" && len(wordsOf(q.Sentence)) == 0 {
		return result, sqldb.Failf(CodeInvalid, "give at least one word of it", "the sentence %.80q has no letters and no digits", q.Sentence)
	}
	values := []string{q.Workspace, q.Thread, q.Sentence, q.Text}
	for _, t := range q.Terms {
		values = append(values, t.Value)
	}
	if i := slices.IndexFunc(values, func(s string) bool { return !isText(s) }); i >= 0 {
		return result, sqldb.Failf(CodeInvalid, "", "it is not text: %.80q", values[i])
	}
	if q.Text != "" && q.Sentence != "" {
		return result, sqldb.Failf(CodeInvalid, "give one of them", "a sentence and a whole text")
	}
	err := s.db.Snapshot(ctx, "searching", func(tx *sql.Tx) error {
		r := search{ctx: ctx, tx: tx, store: s, query: &q, all: slices.Clone(q.Terms)}
		if q.Workspace != "" {
			r.all = append(r.all, manifest.Term{Kind: manifest.TermWorkspace, Value: q.Workspace})
		}
		if q.Thread != "" {
			r.all = append(r.all, manifest.Term{Kind: manifest.TermThread, Value: q.Thread})
		}
		return r.run(&result)
	})
	return result, err
}

type search struct {
	ctx   context.Context //nolint:containedctx // of one call
	tx    *sql.Tx
	store *Store
	query *Query
	// all are the terms that a record must have, and one those of which it must have one, if there are any: what it says of
	// the texts with the sentence.
	all, one []manifest.Term
	// texts are those with the sentence, by hash.
	texts      map[string]string
	incomplete bool
	// firstID and lastID bound the indexed records of the time that is asked for.
	firstID, lastID int64
	// pending are the records that match and are not indexed yet.
	pending []pendingMatch
}

// pendingMatch is a record that is not indexed yet, its chain, and the hashes of what it may have kept.
type pendingMatch struct {
	id, chain int64
	hashes    []string
}

func (r *search) run(to *SearchResult) error {
	if whole := r.query.Text + r.query.Sentence; whole != "" { // one of them
		for _, key := range [][]byte{nil, r.store.opts.FingerprintKey} {
			r.one = append(r.one, manifest.Term{Kind: manifest.TermHash, Value: manifest.Hash(whole, key)})
		}
	}
	if r.query.Sentence != "" {
		if err := r.findTexts(); err != nil {
			return err
		}
	}
	if err := r.findPending(); err != nil {
		return err
	}
	if err := r.boundIDs(); err != nil {
		return err
	}
	return r.report(to)
}

// boundIDs finds between which ids the indexed records are that may be of the time that is asked for.
func (r *search) boundIDs() error {
	const query = "SELECT coalesce(min(first_id), 0), coalesce(max(last_id), -1) FROM indexed_batches WHERE last_at >= $1 AND first_at < $2"
	from, to := r.bounds()
	return r.tx.QueryRowContext(r.ctx, query, from, to).Scan(&r.firstID, &r.lastID)
}

// termsAtOnce bounds the terms of a query of which a record must have one: its time grows with their square.
const termsAtOnce = 100

// matching is a query for the ids of the indexed records that have all terms that they must have, and one of others; these
// may be none.
func (r *search) matching(one []manifest.Term) (query string, args []any) {
	p := &r.store.phrase
	switch {
	case len(r.all)+len(one) == 0:
		query = "SELECT id FROM indexed_records"
	case len(one) == 0:
		query, args = fmt.Sprintf(p.findTerms, 1), []any{p.termsQuery(r.all, nil)}
	default:
		var parts []string
		for some := range slices.Chunk(one, termsAtOnce) {
			args = append(args, p.termsQuery(r.all, some))
			parts = append(parts, "SELECT id FROM ("+fmt.Sprintf(p.findTerms, len(args))+") f")
		}
		query = strings.Join(parts, " UNION ")
	}
	from, to := r.bounds()
	if from == math.MinInt64 && to == math.MaxInt64 {
		return query, args
	}
	const inTime = "SELECT f.id FROM (%s) f CROSS JOIN indexed_records i WHERE f.id BETWEEN %d AND %d AND i.id = f.id AND i.created_at >= %d AND i.created_at < %d"
	return fmt.Sprintf(inTime, query, r.firstID, r.lastID, from, to), args
}

// newest returns the newest so many of the indexed records that match, in the order of appending.
func (r *search) newest(one []manifest.Term, most int64) ([]int64, error) {
	query, args := r.matching(one)
	query = fmt.Sprintf("SELECT id FROM (%s) matching ORDER BY id DESC LIMIT %d", query, most)
	ids, err := sqldb.List(r.ctx, r.tx, query, args, scanID)
	slices.Reverse(ids)
	return ids, err
}

func scanID(rows *sql.Rows, id *int64) error { return rows.Scan(id) }

// findPending finds the records that match and are not indexed yet.
func (r *search) findPending() error {
	from, to := r.bounds()
	return unsettled(r.ctx, r.tx, math.MaxInt32, func(u *settling, record []byte) {
		m, err := manifest.Parse(record)
		if err != nil || u.Created < from || u.Created >= to {
			return // the verifier reports one that cannot be read
		}
		if r.matches(&m) {
			r.pending = append(r.pending, pendingMatch{u.ID, u.Chain, textHashes(&m)})
		}
	})
}

// matches reports whether a record has all terms that it must have.
func (r *search) matches(m *manifest.Manifest) bool {
	have := map[manifest.Term]bool{}
	for _, t := range m.Terms() {
		have[t] = true
	}
	lacks := func(t manifest.Term) bool { return !have[t] }
	return !slices.ContainsFunc(r.all, lacks) && (len(r.one) == 0 || slices.ContainsFunc(r.one, func(t manifest.Term) bool { return have[t] }))
}

func (r *search) bounds() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if !r.query.Since.IsZero() {
		from = nearest(r.query.Since)
	}
	if !r.query.Until.IsZero() {
		to = nearest(r.query.Until)
	}
	return from, to
}

// nearest is the nearest time that can be kept, in nanoseconds since 1970.
func nearest(t time.Time) int64 {
	switch {
	case inRange(t):
		return t.UnixNano()
	case t.Year() < 1970:
		return math.MinInt64
	}
	return math.MaxInt64
}

// mostCounted bounds the records whose threads are counted, which takes as long as finding them.
const mostCounted = 50_000

// report counts the records, and reads what is shown of them.
func (r *search) report(to *SearchResult) error {
	matching, args := r.matching(r.one)
	var first sql.NullInt64
	err := r.tx.QueryRowContext(r.ctx, "SELECT count(*), min(id) FROM ("+matching+") matching", args...).Scan(&to.Total, &first)
	if err != nil {
		return err
	}
	most := int64(math.MaxInt32)
	if r.query.Limit > 0 {
		most = int64(r.query.Limit)
	}
	ids, err := r.newest(r.one, most)
	if err != nil {
		return err
	}
	to.Total += len(r.pending)
	for i := range r.pending {
		ids = append(ids, r.pending[i].id)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	oldest := ids[:1]
	if first.Valid && first.Int64 < ids[0] {
		oldest = []int64{first.Int64}
	}
	if to.Records, err = r.rows(ids[max(0, int64(len(ids))-most):]); err != nil {
		return err
	}
	firsts, err := r.rows(oldest)
	if err != nil || len(firsts) == 0 || len(to.Records) == 0 {
		return err
	}
	to.First, to.Last = &firsts[0], &to.Records[len(to.Records)-1]
	if to.Threads, err = r.countChains(to.Total); err != nil {
		return err
	}
	to.Incomplete = r.incomplete
	return r.writers(to)
}

// countChains returns in how many chains the records are that match.
func (r *search) countChains(records int) (int, error) {
	if records > mostCounted {
		return 0, nil
	}
	matching, args := r.matching(r.one)
	query := "SELECT DISTINCT i.chain_id FROM (" + matching + ") f CROSS JOIN indexed_records i WHERE i.id = f.id"
	chains, err := sqldb.List(r.ctx, r.tx, query, args, scanID)
	for i := range r.pending {
		chains = append(chains, r.pending[i].chain)
	}
	slices.Sort(chains)
	return len(slices.Compact(chains)), err
}

func (r *search) rows(ids []int64) ([]manifest.Index, error) {
	list := make([]manifest.Index, 0, len(ids))
	for part := range slices.Chunk(ids, 512) {
		query := "SELECT " + listColumns + " FROM manifests WHERE id IN (" + places(len(part)) + ") ORDER BY id"
		args := make([]any, len(part))
		for i, id := range part {
			args[i] = id
		}
		some, err := sqldb.List(r.ctx, r.tx, query, args, scanListed)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// haveAll reports whether all words are among those of a text; of the last one its beginning.
func haveAll(text, wanted []string) bool {
	last := len(wanted) - 1
	return !slices.ContainsFunc(wanted[:last], func(w string) bool { return !slices.Contains(text, w) }) &&
		slices.ContainsFunc(text, func(w string) bool { return strings.HasPrefix(w, wanted[last]) })
}

// findTexts finds the kept texts that hold the sentence.
func (r *search) findTexts() error {
	sentence := oneBlank(r.query.Sentence)
	r.texts = map[string]string{}
	words := wordsOf(sentence)
	look := func(hash, text string) {
		if (strings.Contains(oneBlank(text), sentence) || r.query.AnyOrder && haveAll(wordsOf(text), words)) && r.texts[hash] == "" && fits(hash, text, r.store.opts.FingerprintKey) {
			r.texts[hash] = text
			r.one = append(r.one, manifest.Term{Kind: manifest.TermHash, Value: hash})
		}
	}
	err := sqldb.Each(r.ctx, r.tx, r.store.phrase.findWords, []any{r.query.Workspace, r.store.phrase.sentenceQuery(sentence)}, func(rows *sql.Rows) error {
		var hash, text string
		if err := rows.Scan(&hash, &text); err != nil {
			return err
		}
		if len(r.texts) == maxTexts {
			r.incomplete = true
			return errStopped
		}
		look(hash, text)
		return nil
	})
	if err != nil && err != error(errStopped) { //nolint:errorlint // it comes back as it is
		return err
	}
	// What is not indexed was kept with a record that is not settled.
	unindexed := `SELECT hash, text FROM texts t WHERE id IN (SELECT u.text_id FROM text_uses u
		WHERE u.last_id >= (SELECT min(id) FROM pending) AND u.chain_id IN (SELECT c.id FROM pending p CROSS JOIN manifests m
			JOIN chains c ON c.thread_id = m.thread_id AND c.workspace_id = m.workspace_id WHERE m.id = p.id))
		AND NOT EXISTS (` + r.store.phrase.hasWords + ")" + usedIn
	return sqldb.Each(r.ctx, r.tx, unindexed, []any{r.query.Workspace}, func(rows *sql.Rows) error {
		var hash, text string
		err := rows.Scan(&hash, &text)
		look(hash, text)
		return err
	})
}

// oneBlank makes each run of white space one blank.
func oneBlank(s string) string { return strings.Join(strings.Fields(s), " ") }

// newestWith returns for each of the texts the newest of the records that match and have it, as the hashes by the record.
func (r *search) newestWith() (map[int64][]string, error) {
	newest := make(map[int64][]string, len(r.texts))
	for hash := range r.texts {
		ids, err := r.newest([]manifest.Term{{Kind: manifest.TermHash, Value: hash}}, 1)
		if err != nil {
			return nil, err
		}
		for i := range r.pending {
			if slices.Contains(r.pending[i].hashes, hash) {
				ids = append(ids, r.pending[i].id)
			}
		}
		if len(ids) > 0 {
			id := slices.Max(ids)
			newest[id] = append(newest[id], hash)
		}
	}
	return newest, nil
}

// writers says who wrote the sentence in each of the texts, by the newest of the records that have it.
func (r *search) writers(to *SearchResult) error {
	newest, err := r.newestWith()
	if err != nil {
		return err
	}
	unpack := scanManifest()
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(newest))) {
		var m *manifest.Manifest
		err := sqldb.Each(r.ctx, r.tx, "SELECT "+manifestColumns+" FROM manifests WHERE id = $1", []any{id}, func(rows *sql.Rows) error { return unpack(rows, &m) })
		if err != nil {
			return err
		}
		parts := m.WithMessages().Sections
		for i := range parts {
			if s := &parts[i]; slices.Contains(newest[id], s.Hash) {
				writers := s.Writers(r.texts[s.Hash], r.query.Sentence)
				if r.query.AnyOrder && len(writers) == 0 {
					writers = []string{s.Owner}
				}
				to.addText(s, writers, m.ManifestID)
			}
		}
		for i := range m.Reminders {
			if h := &m.Reminders[i]; slices.Contains(newest[id], h.Hash) {
				owner, _, _ := strings.Cut(h.Owner, ".") // a plugin's name has no dot
				to.addText(&manifest.Section{SectionID: string(phases.KindReminder), Fingerprint: h.Fingerprint, Hash: h.Hash}, []string{owner}, m.ManifestID)
			}
		}
	}
	return nil
}

// addText adds a text to those of the same section and writers.
func (r *SearchResult) addText(s *manifest.Section, owners []string, manifestID string) {
	at := slices.IndexFunc(r.Texts, func(t FoundText) bool { return t.SectionID == s.SectionID && slices.Equal(t.Owners, owners) })
	if at < 0 {
		at = len(r.Texts)
		r.Texts = append(r.Texts, FoundText{s.SectionID, owners, 0, s.Fingerprint, s.Hash, manifestID})
	}
	r.Texts[at].Texts++
}
