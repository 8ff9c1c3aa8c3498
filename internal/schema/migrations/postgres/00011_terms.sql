-- What records are found by: a row of indexed_records for each record that is not pending, and its terms in record_terms.
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
CREATE TABLE record_terms (
    id    BIGINT   NOT NULL PRIMARY KEY,
    terms TSVECTOR NOT NULL
);
CREATE INDEX record_terms_terms ON record_terms USING gin (terms);

DELETE FROM day_sums;
INSERT INTO pending (id) SELECT id FROM manifests WHERE TRUE ON CONFLICT (id) DO NOTHING;

-- +goose Down
SELECT 1;
