-- Texts of prompts, kept only where the operator says so. hash is the SHA-256 of
-- the text, fingerprint what manifests name it by, kept_at when it was last part
-- of a prompt, in nanoseconds since 1970, UTC.

-- +goose Up
CREATE TABLE texts (
    fingerprint TEXT   NOT NULL,
    hash        TEXT   NOT NULL,
    kept_at     BIGINT NOT NULL,
    text        TEXT   NOT NULL,
    PRIMARY KEY (fingerprint, hash)
);
CREATE INDEX texts_kept_at ON texts (kept_at);

-- +goose Down
DROP TABLE texts;
