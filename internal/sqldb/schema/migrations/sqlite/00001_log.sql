-- The log. One row of manifests is one record: its canonical JSON in record,
-- compressed as zlib does, bytes long before that. The sqlite3 shell reads it with
-- sqlar_uncompress(record, bytes). outline is what breaks of the provider's cache are
-- judged by; it stands in front of the record, so that it is read without it. All
-- other columns are copies of fields of the record, to find it by; times are in
-- nanoseconds since 1970, UTC. id is the order in which records were appended.

-- +goose Up
CREATE TABLE manifests (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    manifest_id      TEXT NOT NULL,
    workspace_id     TEXT NOT NULL,
    thread_id        TEXT NOT NULL,
    seq              INTEGER NOT NULL,
    turn_id          TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    actor            TEXT NOT NULL,
    profile          TEXT NOT NULL,
    fingerprint_full TEXT NOT NULL,
    hash             TEXT NOT NULL,
    bytes            INTEGER NOT NULL,
    outline          BLOB NOT NULL,
    record           BLOB NOT NULL
);
-- The first two are promises of the log: ids are unique, and no two manifests of
-- a thread have one number. The second one also serves lists of a thread, the
-- third those of a workspace, newest first. Each index costs every append a page.
CREATE UNIQUE INDEX manifests_manifest_id ON manifests (manifest_id);
CREATE UNIQUE INDEX manifests_seq ON manifests (thread_id, workspace_id, seq);
CREATE INDEX manifests_workspace ON manifests (workspace_id, id);

-- The sign-off of each thread: which manifests should be there. first_seq and
-- first_prev move when retention takes manifests away at the front, next_seq,
-- last_hash and last_at with each one that is appended; the signature covers all of
-- it. The row is also what appending to a thread locks.
CREATE TABLE chains (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id    TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    first_seq    INTEGER NOT NULL,
    first_prev   TEXT NOT NULL,
    next_seq     INTEGER NOT NULL,
    last_hash    TEXT NOT NULL,
    last_at      INTEGER NOT NULL,
    signature    TEXT NOT NULL,
    UNIQUE (thread_id, workspace_id)
);

-- Texts of prompts, kept only where the operator says so. hash is what manifests
-- name it by, the SHA-256 of the text or its HMAC; sha256 is the former in any case. Each chain whose records name a
-- text has a row of text_uses for each actor, with the ids of the first and the last of
-- them: a text without one may go.
CREATE TABLE texts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    hash        TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    text        TEXT NOT NULL,
    UNIQUE (hash, sha256)
);
CREATE TABLE text_uses (
    text_id  INTEGER NOT NULL REFERENCES texts (id),
    chain_id INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    first_id INTEGER NOT NULL,
    last_id  INTEGER NOT NULL,
    PRIMARY KEY (text_id, chain_id, actor)
) WITHOUT ROWID;
CREATE INDEX text_uses_chain ON text_uses (chain_id, last_id);

-- Records that have no place in the tree of hashes yet and are not indexed.
CREATE TABLE pending (
    id INTEGER NOT NULL PRIMARY KEY
);

-- The tree of hashes over the whole log (RFC 6962): which record is which leaf, the
-- hashes in blocks, how many leaves there are, and the checkpoints that were signed.
-- The one row of tree_state is what settling locks. Nothing of it goes with records
-- that retention removes: chain_id and seq say which sign-off accounts for those.
CREATE TABLE leaves (
    leaf     INTEGER NOT NULL PRIMARY KEY,
    id       INTEGER NOT NULL UNIQUE,
    chain_id INTEGER NOT NULL,
    seq      INTEGER NOT NULL
);
CREATE TABLE tree_blocks (
    block  INTEGER NOT NULL PRIMARY KEY,
    hashes BLOB NOT NULL
);
CREATE TABLE tree_state (
    id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    leaves INTEGER NOT NULL
);
INSERT INTO tree_state (id, leaves) VALUES (1, 0);
CREATE TABLE checkpoints (
    leaves     INTEGER NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL,
    note       TEXT NOT NULL
);

-- What may not be removed while somebody has a reason to keep it. An empty column is
-- any.
CREATE TABLE holds (
    workspace_id TEXT NOT NULL,
    thread_id    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    held_by      TEXT NOT NULL,
    reason       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, thread_id, actor)
);

-- +goose Down
DROP TABLE holds;
DROP TABLE checkpoints;
DROP TABLE tree_state;
DROP TABLE tree_blocks;
DROP TABLE leaves;
DROP TABLE pending;
DROP TABLE text_uses;
DROP TABLE texts;
DROP TABLE chains;
DROP TABLE manifests;
