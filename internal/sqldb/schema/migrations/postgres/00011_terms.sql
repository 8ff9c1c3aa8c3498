-- What records are found by: a row of indexed_records for each record that is not pending, a row of indexed_batches for those
-- that were indexed together, which bounds their ids and times, and the terms of each record in record_terms.
-- A term stands there as the beginning of the SHA-256 of its kind and value, to the base of 36. Whatever is derived from
-- records is made again: by this migration for the records that are there, with the first ones that are appended after it.

-- +goose Up
DROP TABLE mark_chains;
DROP TABLE mark_blocks;
DROP TABLE marks;
DROP TABLE mark_segments;
CREATE TABLE indexed_records (
    id         BIGINT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    chain_id   BIGINT NOT NULL
);
CREATE TABLE indexed_batches (
    first_id BIGINT NOT NULL,
    last_id  BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    PRIMARY KEY (first_id, last_id)
);
CREATE TABLE record_terms (
    id    BIGINT   NOT NULL PRIMARY KEY,
    terms TSVECTOR NOT NULL
);
CREATE INDEX record_terms_terms ON record_terms USING gin (terms);

DELETE FROM day_sums;
INSERT INTO pending (id) SELECT id FROM manifests WHERE TRUE ON CONFLICT (id) DO NOTHING;

-- +goose Down
SELECT 1;
