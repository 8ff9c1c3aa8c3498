-- What records are found by. term is the beginning of the SHA-256 of a term's kind and
-- value. One row is for all records of a settled batch that have the term: first_id is
-- the batch's first record, ids how far behind it they are (differences, as varints),
-- and count how many. mark_batches has each batch's terms, to remove its rows by.

-- +goose Up
CREATE TABLE marks (
    term     BIGINT  NOT NULL,
    first_id BIGINT  NOT NULL,
    count    INTEGER NOT NULL,
    ids      BYTEA   NOT NULL,
    PRIMARY KEY (term, first_id)
);
CREATE TABLE mark_batches (
    first_id BIGINT NOT NULL PRIMARY KEY,
    last_id  BIGINT NOT NULL,
    terms    BYTEA   NOT NULL
);
CREATE INDEX manifests_created ON manifests (created_at);

-- The words of kept texts: a sentence is looked for in those that have all its words.
CREATE TABLE text_words (
    text_id BIGINT   NOT NULL PRIMARY KEY,
    words   TSVECTOR NOT NULL
);
CREATE INDEX text_words_words ON text_words USING gin (words);

-- +goose Down
DROP TABLE text_words;
DROP INDEX manifests_created;
DROP TABLE mark_batches;
DROP TABLE marks;
