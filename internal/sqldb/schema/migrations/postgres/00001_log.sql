-- The log. One row of manifests is one record: its canonical JSON in record,
-- compressed as zlib does, bytes long before that. outline is what breaks of the provider's cache are
-- judged by; it stands in front of the record, so that it is read without it. All
-- other columns are copies of fields of the record, to find it by; times are in
-- nanoseconds since 1970, UTC. id is the order in which records were appended. The
-- collation "C" compares bytes, whatever the locale of the database: prefixes of ids
-- are looked up as ranges. Records are compressed already.

-- +goose Up
CREATE TABLE manifests (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    manifest_id      TEXT COLLATE "C" NOT NULL,
    workspace_id     TEXT COLLATE "C" NOT NULL,
    thread_id        TEXT COLLATE "C" NOT NULL,
    seq              BIGINT NOT NULL,
    turn_id          TEXT COLLATE "C" NOT NULL,
    created_at       BIGINT NOT NULL,
    actor            TEXT COLLATE "C" NOT NULL,
    profile          TEXT COLLATE "C" NOT NULL,
    fingerprint_full TEXT COLLATE "C" NOT NULL,
    hash             TEXT COLLATE "C" NOT NULL,
    bytes            BIGINT NOT NULL,
    outline          BYTEA NOT NULL,
    record           BYTEA NOT NULL
);
-- The first two are promises of the log: ids are unique, and no two manifests of
-- a thread have one number. The second one also serves lists of a thread, the
-- third those of a workspace, newest first. Each index costs every append a page.
ALTER TABLE manifests ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX manifests_manifest_id ON manifests (manifest_id);
CREATE UNIQUE INDEX manifests_seq ON manifests (thread_id, workspace_id, seq);
CREATE INDEX manifests_workspace ON manifests (workspace_id, id);

-- The sign-off of each thread: which manifests should be there. first_seq and
-- first_prev move when retention takes manifests away at the front, next_seq,
-- last_hash and last_at with each one that is appended; the signature covers all of
-- it. The row is also what appending to a thread locks.
CREATE TABLE chains (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id    TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    first_seq    BIGINT NOT NULL,
    first_prev   TEXT COLLATE "C" NOT NULL,
    next_seq     BIGINT NOT NULL,
    last_hash    TEXT COLLATE "C" NOT NULL,
    last_at      BIGINT NOT NULL,
    signature    TEXT COLLATE "C" NOT NULL,
    UNIQUE (thread_id, workspace_id)
);

-- Texts of prompts, kept only where the operator says so. hash is what manifests
-- name it by, the SHA-256 of the text or its HMAC; sha256 is the former in any case. Each chain whose records name a
-- text has a row of text_uses for each actor, with the ids of the first and the last of
-- them: a text without one may go.
CREATE TABLE texts (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash        TEXT COLLATE "C" NOT NULL,
    sha256      TEXT COLLATE "C" NOT NULL,
    text        TEXT NOT NULL,
    UNIQUE (hash, sha256)
);
CREATE TABLE text_uses (
    text_id  BIGINT NOT NULL REFERENCES texts (id),
    chain_id BIGINT NOT NULL,
    actor    TEXT COLLATE "C" NOT NULL,
    first_id BIGINT NOT NULL,
    last_id  BIGINT NOT NULL,
    PRIMARY KEY (text_id, chain_id, actor)
);
CREATE INDEX text_uses_chain ON text_uses (chain_id, last_id);

-- Records that have no place in the tree of hashes yet and are not indexed.
CREATE TABLE pending (
    id BIGINT NOT NULL PRIMARY KEY
);

-- The tree of hashes over the whole log (RFC 6962): which record is which leaf, the
-- hashes in blocks, how many leaves there are, and the checkpoints that were signed.
-- The one row of tree_state is what settling locks. Nothing of it goes with records
-- that retention removes: chain_id and seq say which sign-off accounts for those.
CREATE TABLE leaves (
    leaf     BIGINT NOT NULL PRIMARY KEY,
    id       BIGINT NOT NULL UNIQUE,
    chain_id BIGINT NOT NULL,
    seq      BIGINT NOT NULL
);
CREATE TABLE tree_blocks (
    block  BIGINT NOT NULL PRIMARY KEY,
    hashes BYTEA NOT NULL
);
CREATE TABLE tree_state (
    id     BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    leaves BIGINT NOT NULL
);
INSERT INTO tree_state (id, leaves) VALUES (1, 0);
CREATE TABLE checkpoints (
    leaves     BIGINT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    note       TEXT NOT NULL
);

-- What may not be removed while somebody has a reason to keep it. An empty column is
-- any.
CREATE TABLE holds (
    workspace_id TEXT COLLATE "C" NOT NULL,
    thread_id    TEXT COLLATE "C" NOT NULL,
    actor        TEXT COLLATE "C" NOT NULL,
    held_by      TEXT NOT NULL,
    reason       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
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
