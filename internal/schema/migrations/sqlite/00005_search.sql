-- What records are found by. term is the beginning of the SHA-256 of a term's kind and
-- value. One row is for all records of a settled batch that have the term: first_id is
-- the batch's first record, ids how far behind it they are (differences, as varints),
-- and count how many. mark_batches has each batch's terms, to remove its rows by.

-- +goose Up
CREATE TABLE marks (
    term     BIGINT  NOT NULL,
    first_id BIGINT  NOT NULL,
    count    INTEGER NOT NULL,
    ids      BLOB    NOT NULL,
    PRIMARY KEY (term, first_id)
) WITHOUT ROWID;
CREATE TABLE mark_batches (
    first_id BIGINT NOT NULL PRIMARY KEY,
    last_id  BIGINT NOT NULL,
    terms    BLOB    NOT NULL
);
CREATE INDEX manifests_created ON manifests (created_at);

-- The words of kept texts, without the texts: a sentence is then looked for in those
-- that have all its words. The words come with blanks between them, and nothing else
-- parts them. What is removed is overwritten at once.
CREATE VIRTUAL TABLE text_words USING fts5(words, content='', detail=none, tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'");
INSERT INTO text_words (text_words, rank) VALUES ('secure-delete', 1);

-- +goose Down
DROP TABLE text_words;
DROP INDEX manifests_created;
DROP TABLE mark_batches;
DROP TABLE marks;
