-- What records are found by: a row of indexed_records for each record that is not pending, a row of indexed_batches for those
-- that were indexed together, which bounds their ids and times, and the terms of each record in record_terms,
-- whose rowid is the record's id. A term stands there as the beginning of the SHA-256 of its kind and value, to the base
-- of 36. The words of texts are indexed in the same way. Whatever is derived from records is made again: by this
-- migration for the records that are there, with the first ones that are appended after it.

-- +goose Up
DROP TABLE mark_chains;
DROP TABLE mark_blocks;
DROP TABLE marks;
DROP TABLE mark_segments;
CREATE TABLE indexed_records (
    id         INTEGER NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL,
    chain_id   INTEGER NOT NULL
);
CREATE TABLE indexed_batches (
    first_id INTEGER NOT NULL,
    last_id  INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (first_id, last_id)
);
CREATE VIRTUAL TABLE record_terms USING fts5(terms, content='', contentless_delete=1, detail=none, tokenize=ascii);

DROP TABLE text_words;
CREATE VIRTUAL TABLE text_words USING fts5(words, content='', contentless_delete=1, detail=none,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'");

DELETE FROM day_sums;
INSERT INTO pending (id) SELECT id FROM manifests WHERE TRUE ON CONFLICT (id) DO NOTHING;

-- +goose Down
SELECT 1;
