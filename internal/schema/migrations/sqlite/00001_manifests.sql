-- One row is one manifest: its canonical JSON in record, as text that the
-- sqlite3 shell shows. All other columns are copies of fields of the record, to
-- find it by; created_at is in nanoseconds since 1970, UTC. An ordinary rowid
-- table: id is the order in which manifests were appended.

-- +goose Up
CREATE TABLE manifests (
    id               INTEGER PRIMARY KEY,
    manifest_id      TEXT    NOT NULL,
    workspace_id     TEXT    NOT NULL,
    thread_id        TEXT    NOT NULL,
    seq              INTEGER NOT NULL,
    turn_id          TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    profile          TEXT    NOT NULL,
    fingerprint_full TEXT    NOT NULL,
    hash             TEXT    NOT NULL,
    record           TEXT    NOT NULL
);

-- +goose Down
DROP TABLE manifests;
