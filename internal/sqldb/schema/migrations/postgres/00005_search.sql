-- What records are found by. A mark is the beginning of the SHA-256 of a term's kind and
-- value. The marks of some records are a segment: sorted, with the records' ids, and
-- divided into 2^bits rows of marks, whose id is segment * 2^20 + number. Segments of one
-- size are merged into a larger one, their target. The other two tables say of 1,024
-- records each which are indexed and still there (bits), from when they are, and which
-- chains they belong to (8 bytes each).

-- +goose Up
CREATE TABLE mark_segments (
    segment  BIGINT  NOT NULL PRIMARY KEY,
    target   BIGINT  NOT NULL,
    bits     INTEGER NOT NULL,
    records  BIGINT  NOT NULL,
    first_id BIGINT  NOT NULL,
    last_id  BIGINT  NOT NULL,
    bytes    BIGINT  NOT NULL
);
CREATE TABLE marks (
    id      BIGINT  NOT NULL PRIMARY KEY,
    entries BYTEA   NOT NULL
);
CREATE TABLE mark_blocks (
    block    BIGINT  NOT NULL PRIMARY KEY,
    first_at BIGINT  NOT NULL,
    last_at  BIGINT  NOT NULL,
    kept     BYTEA   NOT NULL
);
CREATE TABLE mark_chains (
    block  BIGINT  NOT NULL PRIMARY KEY,
    chains BYTEA   NOT NULL
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
DROP TABLE mark_chains;
DROP TABLE mark_blocks;
DROP TABLE marks;
DROP TABLE mark_segments;
