-- What providers reported for kept manifests, beside the records and outside
-- their hashes. rounds is how many compilations of the turn the numbers are for,
-- reported_at in nanoseconds since 1970, UTC.

-- +goose Up
CREATE TABLE usages (
    manifest_id      TEXT COLLATE "C" NOT NULL,
    reported_at        BIGINT NOT NULL,
    rounds             BIGINT NOT NULL,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    PRIMARY KEY (manifest_id, reported_at)
);

-- +goose Down
DROP TABLE usages;
