-- One row is one manifest: its canonical JSON in record, as text, because the
-- hash is over these bytes and jsonb would write them anew. All other columns are
-- copies of fields of the record, to find it by; created_at is in nanoseconds
-- since 1970, UTC. The collation "C" compares bytes, whatever the locale of the
-- database: prefixes of ids are looked up as ranges.

-- +goose Up
CREATE TABLE manifests (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    manifest_id      TEXT COLLATE "C" NOT NULL,
    workspace_id     TEXT COLLATE "C" NOT NULL,
    thread_id        TEXT COLLATE "C" NOT NULL,
    seq              BIGINT NOT NULL,
    turn_id          TEXT COLLATE "C" NOT NULL,
    created_at       BIGINT NOT NULL,
    profile          TEXT COLLATE "C" NOT NULL,
    fingerprint_full TEXT COLLATE "C" NOT NULL,
    hash             TEXT COLLATE "C" NOT NULL,
    record           TEXT NOT NULL
);

-- +goose Down
DROP TABLE manifests;
