package store

import (
	"context"
	"database/sql"
	"encoding/binary"
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
	all   []manifest.Term
	// any are the terms of the texts with the sentence: a record has one of them.
	any []manifest.Term
	// found are the ids of the indexed records with each mark, ascending.
	found map[mark][]int64
	// blocks are those that may hold records of the time that is asked for.
	blocks blocks
	// chains are those of the records.
	chains idSet
	// texts are those with the sentence, by hash, and places the newest unindexed records that match and name one.
	texts      map[string]string
	places     map[string]int64
	incomplete bool
}

func (r *search) run(to *SearchResult) error {
	if whole := r.query.Text + r.query.Sentence; whole != "" { // one of them
		for _, key := range [][]byte{nil, r.store.opts.FingerprintKey} {
			r.any = append(r.any, manifest.Term{Kind: manifest.TermHash, Value: manifest.Hash(whole, key)})
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
	return r.report(ascending(append(ids, newer...)), to)
}

// indexed returns the ids of the indexed records that match.
func (r *search) indexed() (ids []int64, err error) {
	from, to := r.bounds()
	if r.blocks, err = readBlocks(r.ctx, r.tx, "last_at >= $1 AND first_at < $2", from, to); err != nil {
		return nil, err
	}
	var sets [][]mark
	for _, t := range r.all {
		sets = append(sets, []mark{markOf(t)})
	}
	if len(r.any) > 0 {
		sets = append(sets, marksOf(r.any))
	}
	if len(sets) == 0 {
		return r.there(r.blocks.ids())
	}
	if r.found, err = r.postings(slices.Concat(sets...)); err != nil {
		return nil, err
	}
	for i, set := range sets {
		var have []int64
		for _, k := range set {
			have = append(have, r.found[k]...)
		}
		if have = ascending(have); i > 0 {
			have = common(ids, have)
		}
		ids = have
	}
	return r.there(ids)
}

func marksOf(terms []manifest.Term) []mark {
	marks := make([]mark, len(terms))
	for i, t := range terms {
		marks[i] = markOf(t)
	}
	return marks
}

// postings returns the ids of the records that have each of the marks, ascending.
func (r *search) postings(marks []mark) (map[mark][]int64, error) {
	found := make(map[mark][]int64, len(marks))
	for _, k := range marks {
		found[k] = nil
	}
	all, err := segments(r.ctx, r.tx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		var slots []int64
		for k := range found {
			slots = append(slots, all[i].row(k.slot(all[i].Bits)))
		}
		err := r.inChunks("SELECT entries FROM marks WHERE id", ascending(slots), func(rows *sql.Rows) error {
			var slot sql.RawBytes
			if err := rows.Scan(&slot); err != nil {
				return err
			}
			return collect(slot, found)
		})
		if err != nil {
			return nil, err
		}
	}
	for k, ids := range found {
		found[k] = ascending(ids)
	}
	return found, nil
}

// collect adds the ids of the marks that are looked for.
func collect(slot []byte, found map[mark][]int64) error {
	for len(slot) > 0 {
		k, packed, rest, err := nextEntry(slot)
		if err != nil {
			return err
		}
		if ids, wanted := found[k]; wanted {
			if found[k], err = appendIDs(ids, packed); err != nil {
				return err
			}
		}
		slot = rest
	}
	return nil
}

// inChunks calls do for each row of a query that ends where ids are chosen.
func (r *search) inChunks(query string, ids []int64, do func(rows *sql.Rows) error) error {
	for part := range slices.Chunk(ids, 512) {
		if err := sqldb.Each(r.ctx, r.tx, query+" IN ("+places(len(part))+")", anys(part), do); err != nil {
			return err
		}
	}
	return nil
}

// there keeps the ids of records that are still there and from the time that is asked for. Where a block is only in part
// from that time, the records are asked.
func (r *search) there(ids []int64) ([]int64, error) {
	from, to := r.bounds()
	there := ids[:0]
	err := byBlock(ids, func(n int64, ids []int64) error {
		b := r.blocks[n]
		ids = slices.DeleteFunc(ids, func(id int64) bool { return !b.has(id) })
		if len(ids) > 0 && (b.first < from || b.last >= to) {
			var err error
			if ids, err = r.created(ids, max(from, b.first), min(to-1, b.last)); err != nil {
				return err
			}
		}
		there = append(there, ids...)
		return nil
	})
	return there, err
}

// created keeps the ids of records that were made from one time to another, both included. A few times are read from
// their index, which is shorter than the records.
func (r *search) created(ids []int64, from, to int64) ([]int64, error) {
	const query = "SELECT id FROM manifests WHERE created_at BETWEEN $1 AND $2 LIMIT $3"
	few := 16 * len(ids)
	made, err := sqldb.List(r.ctx, r.tx, query, []any{from, to, few}, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
	if err != nil || len(made) < few {
		return common(ids, ascending(made)), err
	}
	var there []int64
	err = r.inChunks(fmt.Sprintf("SELECT id FROM manifests WHERE created_at BETWEEN %d AND %d AND id", from, to), ids, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		there = append(there, id)
		return err
	})
	return ascending(there), err
}

// unindexed returns the ids of the records that are not indexed yet and match.
func (r *search) unindexed() ([]int64, error) {
	var ids []int64
	from, to := r.bounds()
	r.chains = idSet{}
	err := unsettled(r.ctx, r.tx, math.MaxInt32, func(u *settling, record []byte) {
		m, err := manifest.Parse(record)
		if err != nil || u.Created < from || u.Created >= to {
			return // the verifier reports one that cannot be read
		}
		if !r.matches(&m) {
			return
		}
		ids = append(ids, u.ID)
		r.chains.add(uint64(u.Chain)) //nolint:gosec // ids are positive
		for _, hash := range textHashes(&m) {
			if r.places != nil {
				r.places[hash] = u.ID
			}
		}
	})
	return ids, err
}

// matches reports whether a record has all terms that it must have.
func (r *search) matches(m *manifest.Manifest) bool {
	have := map[manifest.Term]bool{}
	for _, t := range m.Terms() {
		have[t] = true
	}
	lacks := func(t manifest.Term) bool { return !have[t] }
	return !slices.ContainsFunc(r.all, lacks) && (len(r.any) == 0 || slices.ContainsFunc(r.any, func(t manifest.Term) bool { return have[t] }))
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

// common keeps the ids that stand in another list too; both ascend.
func common(ids, other []int64) []int64 {
	at := 0
	return slices.DeleteFunc(ids, func(id int64) bool {
		for near := 8; near > 0 && at < len(other) && other[at] < id; near-- {
			at++
		}
		if at < len(other) && other[at] < id {
			n, _ := slices.BinarySearch(other[at:], id)
			at += n
		}
		return at == len(other) || other[at] != id
	})
}

func anys(ids []int64) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return args
}

// mostCounted bounds the records whose threads are counted, which takes as long as finding them.
const mostCounted = 50_000

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
	if len(ids) <= mostCounted {
		if err := r.countChains(ids); err != nil {
			return err
		}
		to.Threads = r.chains.len()
	}
	to.Incomplete = r.incomplete
	return r.writers(ids, to)
}

// countChains adds the chains of indexed records.
func (r *search) countChains(ids []int64) error {
	var numbers []int64
	of := map[int64][]int64{}
	_ = byBlock(ids, func(n int64, ids []int64) error {
		if r.blocks[n] != nil {
			numbers, of[n] = append(numbers, n), ids
		}
		return nil
	})
	return r.inChunks("SELECT block, chains FROM mark_chains WHERE block", numbers, func(rows *sql.Rows) error {
		var n int64
		var chains sql.RawBytes
		if err := rows.Scan(&n, &chains); err != nil {
			return err
		}
		if len(chains) != 8*blockIDs {
			return errIndexDamaged
		}
		for _, id := range of[n] {
			if chain := binary.BigEndian.Uint64(chains[id%blockIDs*8:]); chain != 0 {
				r.chains.add(chain)
			}
		}
		return nil
	})
}

func (r *search) rows(ids []int64) ([]manifest.Index, error) {
	list := make([]manifest.Index, 0, len(ids))
	for part := range slices.Chunk(ids, 512) {
		query := "SELECT " + listColumns + " FROM manifests WHERE id IN (" + places(len(part)) + ") ORDER BY id"
		some, err := sqldb.List(r.ctx, r.tx, query, anys(part), scanListed)
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
	r.texts, r.places = map[string]string{}, map[string]int64{}
	words := wordsOf(sentence)
	look := func(hash, text string) {
		if (strings.Contains(oneBlank(text), sentence) || r.query.AnyOrder && haveAll(wordsOf(text), words)) && r.texts[hash] == "" && fits(hash, text, r.store.opts.FingerprintKey) {
			r.texts[hash] = text
			r.any = append(r.any, manifest.Term{Kind: manifest.TermHash, Value: hash})
		}
	}
	err := sqldb.Each(r.ctx, r.tx, r.store.phrase.findWords, []any{r.query.Workspace, r.store.phrase.query(sentence)}, func(rows *sql.Rows) error {
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

// writers says who wrote the sentence in each of the texts, by the newest of the records that have it.
func (r *search) writers(ids []int64, to *SearchResult) error {
	newest := make(map[int64][]string, len(r.texts)) // hashes by id
	for f := range r.texts {
		have := slices.Clip(r.found[markOf(manifest.Term{Kind: manifest.TermHash, Value: f})])
		if id := r.places[f]; id != 0 {
			have = append(have, id)
		}
		if have = common(slices.Clone(have), ids); len(have) > 0 {
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
			if s := &m.Sections[i]; slices.Contains(newest[id], s.Hash) {
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
