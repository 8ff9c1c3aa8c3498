-- Texts of prompts, kept only where the operator says so. hash is the SHA-256 of
-- the text, fingerprint what manifests name it by, last_used the id of the newest
-- row of manifests that does. Without an index over last_used the databases change
-- it in place, which every append does.

-- +goose Up
CREATE TABLE texts (
    fingerprint TEXT   NOT NULL,
    hash        TEXT   NOT NULL,
    last_used   BIGINT NOT NULL,
    text        TEXT   NOT NULL,
    PRIMARY KEY (fingerprint, hash)
);

-- +goose Down
DROP TABLE texts;
