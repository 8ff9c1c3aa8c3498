package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	_ "modernc.org/sqlite"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
)

func systems() []system { return []system{plainBM25(), fts5(), bleveEnglish(), grapnel()} }

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.IsMark(c) })
}

// grapnel is the memory itself: a store in SQLite, and what a recall ranks.
func grapnel() system {
	return system{"Grapnel", func(ctx context.Context, c *collection) (func(string) ([]string, error), func() error, error) {
		dir, err := os.MkdirTemp("", "recalleval-")
		if err != nil {
			return nil, nil, err
		}
		s, err := itemstore.Open(ctx, "sqlite:"+filepath.Join(dir, "memory.db"), itemstore.Options{})
		if err != nil {
			return nil, nil, err
		}
		ids := map[string]string{} // by the text: a text is stored once
		_, err = s.Import(ctx, func(yield func(itemstore.Item, error) bool) {
			for _, i := range c.items {
				if _, again := ids[recall.Key(i.text)]; again || recall.Key(i.text) == "" {
					continue
				}
				ids[recall.Key(i.text)] = i.id
				if runes := []rune(i.text); len(runes) > itemstore.MaxText {
					i.text = string(runes[:itemstore.MaxText])
				}
				if !yield(itemstore.Item{
					WorkspaceID: "eval", Scope: itemstore.ScopeWorkspace, Category: turnpolicy.Factual, Source: itemstore.SourceTurn,
					Text: i.text, CreatedAt: i.at,
				}, nil) {
					return
				}
			}
		})
		search := func(text string) ([]string, error) {
			found, err := s.Recall(ctx, itemstore.View{WorkspaceID: "eval"}, recall.Read(text), c.now)
			var list []string
			for _, r := range found.Ranked[:min(len(found.Ranked), depth)] {
				list = append(list, ids[recall.Key(r.Text)])
			}
			return list, err
		}
		return search, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }, err
	}}
}

// fts5 is SQLite's own full-text search with Porter's stems, and the words of the question that are not stop words.
func fts5() system {
	return system{"SQLite FTS5, porter, stop words", func(ctx context.Context, c *collection) (func(string) ([]string, error), func() error, error) {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(1)
		if _, err = db.ExecContext(ctx, "CREATE VIRTUAL TABLE items USING fts5 (id UNINDEXED, text, tokenize = 'porter unicode61')"); err != nil {
			return nil, nil, err
		}
		for _, i := range c.items {
			if _, err := db.ExecContext(ctx, "INSERT INTO items VALUES ($1, $2)", i.id, i.text); err != nil {
				return nil, nil, err
			}
		}
		stop := stopWords()
		search := func(text string) (list []string, err error) {
			var match []string
			for _, w := range words(text) {
				if !stop[w] {
					match = append(match, `"`+w+`"`)
				}
			}
			if len(match) == 0 {
				return nil, nil
			}
			rows, err := db.QueryContext(ctx, "SELECT id FROM items WHERE items MATCH $1 ORDER BY rank LIMIT $2", strings.Join(match, " OR "), depth)
			if err != nil {
				return nil, err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var id string
				if err := rows.Scan(&id); err != nil {
					return nil, err
				}
				list = append(list, id)
			}
			return list, rows.Err()
		}
		return search, db.Close, nil
	}}
}

// stopWords are bleve's for English.
func stopWords() map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(string(en.EnglishStopWords)) {
		line, _, _ = strings.Cut(line, "|")
		for w := range strings.FieldsSeq(line) {
			all[w] = true
		}
	}
	return all
}

// bleveEnglish is bleve with its analyzer for English.
func bleveEnglish() system {
	return system{"bleve, English", func(_ context.Context, c *collection) (func(string) ([]string, error), func() error, error) {
		mapping := bleve.NewIndexMapping()
		mapping.DefaultAnalyzer = en.AnalyzerName
		index, err := bleve.NewMemOnly(mapping)
		if err != nil {
			return nil, nil, err
		}
		for _, i := range c.items {
			if err := index.Index(i.id, map[string]string{"text": i.text}); err != nil {
				return nil, nil, err
			}
		}
		search := func(text string) (list []string, err error) {
			query := bleve.NewMatchQuery(text)
			query.SetField("text")
			found, err := index.Search(bleve.NewSearchRequestOptions(query, depth, 0, false))
			if err != nil {
				return nil, err
			}
			for _, hit := range found.Hits {
				list = append(list, hit.ID)
			}
			return list, nil
		}
		return search, index.Close, nil
	}}
}

// plainBM25 is BM25 (k1 1.2, b 0.75) over words in lower case.
func plainBM25() system {
	return system{"plain BM25", func(_ context.Context, c *collection) (func(string) ([]string, error), func() error, error) {
		counts, df, lengths, average := make([]map[string]float64, len(c.items)), map[string]float64{}, make([]float64, len(c.items)), 0.0
		for n, i := range c.items {
			counts[n] = map[string]float64{}
			for _, w := range words(i.text) {
				counts[n][w]++
				lengths[n]++
			}
			average += lengths[n] / float64(len(c.items))
			for w := range counts[n] {
				df[w]++
			}
		}
		search := func(text string) (list []string, err error) {
			scores, asked := make([]float64, len(c.items)), words(text)
			for n := range c.items {
				for _, w := range asked {
					k := counts[n][w]
					scores[n] += math.Log1p((float64(len(c.items))-df[w]+0.5)/(df[w]+0.5)) * k * 2.2 / (k + 1.2*(0.25+0.75*lengths[n]/average))
				}
			}
			order := make([]int, len(scores))
			for n := range order {
				order[n] = n
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
			for _, n := range order[:min(len(order), depth)] {
				list = append(list, c.items[n].id)
			}
			return list, nil
		}
		return search, func() error { return nil }, nil
	}}
}
