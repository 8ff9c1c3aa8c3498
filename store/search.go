package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Query says what records to look for: those for which all holds that is set.
type Query struct {
	Filter

	// Terms are terms that a record has, all of them.
	Terms []manifest.Term
	// Sentence is a piece of a kept text. Blanks and line ends count as one blank, and case counts.
	Sentence string
	// Text is the text of a section with its heading, or of a whole prompt. It need not be kept: its fingerprint is looked
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
	// SectionID is the section's id, and Owners who wrote the sentence there.
	SectionID string   `json:"section_id"`
	Owners    []string `json:"owners"`
	// Texts is how many different texts these are, Fingerprint is that of the newest, and ManifestID a record that has it.
	Texts       int    `json:"texts"`
	Fingerprint string `json:"fingerprint"`
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
	all   []manifest.Term
	// any are the terms of the texts with the sentence: a record has one of them.
	any []manifest.Term
	// texts are those with the sentence, by fingerprint, and places the ids of unindexed records that name one.
	texts      map[string]string
	places     map[string]int64
	incomplete bool
}

func (r *search) run(to *SearchResult) error {
	if whole := r.query.Text + r.query.Sentence; whole != "" { // one of them
		for _, key := range [][]byte{nil, r.store.opts.FingerprintKey} {
			r.any = append(r.any, manifest.Term{Kind: manifest.TermHash, Value: manifest.Fingerprint(whole, key)})
		}
	}
	if r.query.Sentence != "" {
		if err := r.findTexts(); err != nil {
			return err
		}
	}
	ids, err := r.indexed()
	if err != nil {
		return err
	}
	newer, err := r.unindexed()
	if err != nil {
		return err
	}
	ids = append(ids, newer...)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if ids, err = r.kept(ids); err != nil {
		return err
	}
	return r.report(ids, to)
}

// indexed returns the ids of the indexed records that match.
func (r *search) indexed() ([]int64, error) {
	sets := make([][]mark, 0, len(r.all)+1)
	for _, t := range r.all {
		sets = append(sets, []mark{markOf(t)})
	}
	if len(r.any) > 0 {
		var set []mark
		for _, t := range r.any {
			set = append(set, markOf(t))
		}
		sets = append(sets, set)
	}
	if len(sets) == 0 {
		return r.created()
	}
	rarest, err := r.rarest(sets)
	if err != nil {
		return nil, err
	}
	ids, err := r.postings(sets[rarest])
	if err != nil {
		return nil, err
	}
	for i, set := range sets {
		if i == rarest || len(ids) == 0 {
			continue
		}
		if ids, err = r.intersect(ids, set); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// created returns the ids of all records of the time that is asked for.
func (r *search) created() ([]int64, error) {
	from, to := r.bounds()
	const query = "SELECT id FROM manifests WHERE created_at >= $1 AND created_at < $2"
	return sqldb.List(r.ctx, r.tx, query, []any{from, to}, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
}

// rarest returns the set with the fewest batches.
func (r *search) rarest(sets [][]mark) (int, error) {
	const query = "SELECT count(*) FROM (SELECT 1 FROM marks WHERE term = $1 LIMIT 2000) AS few"
	best, fewest := 0, -1
	for i, set := range sets {
		total := 0
		for _, k := range set {
			var n int
			if err := r.tx.QueryRowContext(r.ctx, query, int64(k)).Scan(&n); err != nil {
				return 0, err
			}
			total += n
		}
		if fewest < 0 || total < fewest {
			best, fewest = i, total
		}
	}
	return best, nil
}

// postings returns the ids that have one of the marks, ascending.
func (r *search) postings(set []mark) ([]int64, error) {
	var ids []int64
	for _, k := range set {
		err := sqldb.Each(r.ctx, r.tx, "SELECT first_id, ids FROM marks WHERE term = $1 ORDER BY first_id", []any{int64(k)}, func(rows *sql.Rows) error {
			var first int64
			var packed sql.RawBytes
			err := rows.Scan(&first, &packed)
			ids = append(ids, idsOf(first, packed)...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// intersect keeps the ids that have one of the marks.
func (r *search) intersect(ids []int64, set []mark) ([]int64, error) {
	if len(ids) > 4096 { // reading all is quicker than looking each batch up
		other, err := r.postings(set)
		if err != nil {
			return nil, err
		}
		return common(ids, other), nil
	}
	const query = "SELECT first_id, ids FROM marks WHERE term = $1 AND first_id <= $2 ORDER BY first_id DESC LIMIT 1"
	have := map[int64]bool{}
	for _, k := range set {
		next := int64(-1) // what is below was looked up
		for _, id := range ids {
			if id < next {
				continue
			}
			var first int64
			var packed []byte
			err := r.tx.QueryRowContext(r.ctx, query, int64(k), id).Scan(&first, &packed)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return nil, err
			}
			next = id
			for _, other := range idsOf(first, packed) {
				have[other] = true
				next = max(next, other+1)
			}
		}
	}
	return slices.DeleteFunc(ids, func(id int64) bool { return !have[id] }), nil
}

// unindexed returns the ids of the records that are not indexed yet and match.
func (r *search) unindexed() ([]int64, error) {
	batch, err := r.store.unsettled(r.ctx, r.tx, 1<<20)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for i := range batch {
		m, err := manifest.Parse(batch[i].Record)
		if err != nil {
			continue // the verifier reports it
		}
		have := map[manifest.Term]bool{}
		for _, t := range m.Terms() {
			have[t] = true
		}
		lacks := func(t manifest.Term) bool { return !have[t] }
		if !slices.ContainsFunc(r.all, lacks) && (len(r.any) == 0 || slices.ContainsFunc(r.any, func(t manifest.Term) bool { return have[t] })) {
			ids = append(ids, batch[i].ID)
		}
		for j := range m.Sections {
			if r.places != nil {
				r.places[m.Sections[j].Fingerprint] = batch[i].ID
			}
		}
	}
	return ids, nil
}

func (r *search) bounds() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if !r.query.Since.IsZero() {
		from = r.query.Since.UnixNano()
	}
	if !r.query.Until.IsZero() {
		to = r.query.Until.UnixNano()
	}
	return from, to
}

// mostChecked bounds the ids that are looked up one by one.
const mostChecked = 50_000

// kept keeps the ids of records from the time that is asked for, and that are still there.
func (r *search) kept(ids []int64) ([]int64, error) {
	if from, to := r.bounds(); from != math.MinInt64 || to != math.MaxInt64 || len(ids) > mostChecked {
		there, err := r.created()
		slices.Sort(there)
		return common(ids, there), err
	}
	var there []int64
	for part := range slices.Chunk(ids, 512) {
		some, err := sqldb.List(r.ctx, r.tx, "SELECT id FROM manifests WHERE id IN ("+places(len(part))+") ORDER BY id", anys(part),
			func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
		if err != nil {
			return nil, err
		}
		there = append(there, some...)
	}
	return there, nil
}

// common keeps the ids that stand in another list too; both ascend.
func common(ids, other []int64) []int64 {
	return slices.DeleteFunc(ids, func(id int64) bool { _, found := slices.BinarySearch(other, id); return !found })
}

func anys(ids []int64) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return args
}

// report reads what is shown of the records.
func (r *search) report(ids []int64, to *SearchResult) error {
	to.Total = len(ids)
	if len(ids) == 0 {
		return nil
	}
	shown := ids
	if n := r.query.Limit; n > 0 && len(ids) > n {
		shown = ids[len(ids)-n:]
	}
	var err error
	if to.Records, err = r.rows(shown); err != nil {
		return err
	}
	first, err := r.rows(ids[:1])
	if err != nil || len(first) == 0 || len(to.Records) == 0 {
		return err
	}
	to.First, to.Last = &first[0], &to.Records[len(to.Records)-1]
	if len(ids) <= mostChecked {
		if to.Threads, err = r.threads(ids); err != nil {
			return err
		}
	}
	to.Incomplete = r.incomplete
	return r.writers(ids, to)
}

// threads counts the threads of records.
func (r *search) threads(ids []int64) (int, error) {
	threads := map[[2]string]bool{}
	for part := range slices.Chunk(ids, 512) {
		query := "SELECT DISTINCT workspace_id, thread_id FROM manifests WHERE id IN (" + places(len(part)) + ")"
		err := sqldb.Each(r.ctx, r.tx, query, anys(part), func(rows *sql.Rows) error {
			var t [2]string
			err := rows.Scan(&t[0], &t[1])
			threads[t] = true
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return len(threads), nil
}

func (r *search) rows(ids []int64) ([]manifest.Index, error) {
	list := make([]manifest.Index, 0, len(ids))
	for part := range slices.Chunk(ids, 512) {
		query := "SELECT " + indexColumns + " FROM manifests WHERE id IN (" + places(len(part)) + ") ORDER BY id"
		some, err := sqldb.List(r.ctx, r.tx, query, anys(part), func(rows *sql.Rows, x *manifest.Index) error { return scanIndex(rows, x) })
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// findTexts finds the kept texts that hold the sentence.
func (r *search) findTexts() error {
	sentence := oneBlank(r.query.Sentence)
	r.texts, r.places = map[string]string{}, map[string]int64{}
	look := func(fingerprint, text string) {
		if strings.Contains(oneBlank(text), sentence) && r.texts[fingerprint] == "" {
			r.texts[fingerprint] = text
			r.any = append(r.any, manifest.Term{Kind: manifest.TermHash, Value: fingerprint})
		}
	}
	err := sqldb.Each(r.ctx, r.tx, r.store.phrase.findWords, []any{r.store.phrase.query(sentence), r.query.Workspace}, func(rows *sql.Rows) error {
		var fingerprint, text string
		if err := rows.Scan(&fingerprint, &text); err != nil {
			return err
		}
		if len(r.texts) == maxTexts {
			r.incomplete = true
			return errStopped
		}
		look(fingerprint, text)
		return nil
	})
	if err != nil && err != error(errStopped) { //nolint:errorlint // it comes back as it is
		return err
	}
	return sqldb.Each(r.ctx, r.tx, "SELECT fingerprint, text FROM texts t WHERE NOT EXISTS ("+r.store.phrase.hasWords+")", nil, func(rows *sql.Rows) error {
		var fingerprint, text string
		err := rows.Scan(&fingerprint, &text)
		look(fingerprint, text)
		return err
	})
}

// oneBlank makes each run of white space one blank.
func oneBlank(s string) string { return strings.Join(strings.Fields(s), " ") }

// writers says who wrote the sentence in each of the texts, by the newest of the records that have it.
func (r *search) writers(ids []int64, to *SearchResult) error {
	newest := make(map[int64][]string, len(r.texts)) // fingerprints by id
	for f := range r.texts {
		have, err := r.postings([]mark{markOf(manifest.Term{Kind: manifest.TermHash, Value: f})})
		if err != nil {
			return err
		}
		if id := r.places[f]; id != 0 {
			have = append(have, id)
		}
		if have = common(have, ids); len(have) > 0 {
			id := have[len(have)-1]
			newest[id] = append(newest[id], f)
		}
	}
	unpack := scanManifest()
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(newest))) {
		var m *manifest.Manifest
		err := sqldb.Each(r.ctx, r.tx, "SELECT "+manifestColumns+" FROM manifests WHERE id = $1", []any{id}, func(rows *sql.Rows) error { return unpack(rows, &m) })
		if err != nil {
			return err
		}
		for i := range m.Sections {
			if s := &m.Sections[i]; slices.Contains(newest[id], s.Fingerprint) {
				to.addText(s, s.Writers(r.texts[s.Fingerprint], r.query.Sentence), m.ManifestID)
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
		r.Texts = append(r.Texts, FoundText{s.SectionID, owners, 0, s.Fingerprint, manifestID})
	}
	r.Texts[at].Texts++
}
