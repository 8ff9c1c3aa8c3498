-- What is remembered. Times are in nanoseconds since 1970, UTC; 0 is never.

-- +goose Up
-- secret: what tombstones are keyed with, hex. recall_version: the rules by which
-- the index was made. untidy: forgotten bytes may still be in the file.
CREATE TABLE memory_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Scopes have numbers, which never change. Besides scopes there are "rest", all of a
-- workspace but its own items, and "everywhere", a user's items in all workspaces:
-- an item stands in the index under each number that it is to be found by.
CREATE TABLE memory_scopes (
    no           INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    scope        TEXT NOT NULL,
    scope_id     TEXT NOT NULL,
    UNIQUE (workspace_id, scope, scope_id)
);
CREATE INDEX memory_scopes_of ON memory_scopes (scope, scope_id);

-- seq grows with each change of an item, so that the newest have the greatest. home
-- is the number of the workspace. superseded_by is null for items in effect, and only
-- those are in the index and in the statistics. terms are those of the text, sorted,
-- with ":n" behind those that occur more than once; length is how many there are.
CREATE TABLE memory_items (
    seq           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    home          INTEGER NOT NULL,
    scope_no      INTEGER NOT NULL,
    category      TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    slot          TEXT    NOT NULL,
    hash          TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    last_used_at  INTEGER NOT NULL,
    uses          INTEGER NOT NULL,
    supersedes    TEXT    NOT NULL,
    superseded_by TEXT,
    length        INTEGER NOT NULL,
    terms         TEXT    NOT NULL,
    text          TEXT    NOT NULL,
    evidence      TEXT    NOT NULL
);
CREATE UNIQUE INDEX memory_items_text ON memory_items (scope_no, hash) WHERE superseded_by IS NULL;
CREATE UNIQUE INDEX memory_items_slot ON memory_items (scope_no, slot) WHERE superseded_by IS NULL AND slot <> '';
CREATE INDEX memory_items_scope ON memory_items (scope_no, id, category);
CREATE INDEX memory_items_home ON memory_items (home, id, category);
CREATE INDEX memory_items_history ON memory_items (superseded_by) WHERE superseded_by IS NOT NULL;

-- The index has the seq of each item and tokens: a number of memory_scopes, an x, and
-- a term; without a term for what is pinned. Terms are folded already, so the
-- tokenizer that leaves everything beyond ASCII as it is does nothing to them. What
-- is deleted is taken out, not marked.
CREATE VIRTUAL TABLE memory_index USING fts5 (tokens, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
INSERT INTO memory_index (memory_index, rank) VALUES ('secure-delete', 1);

-- In how many items each term is; "#items" and "#length" are sums over all items.
CREATE TABLE memory_counts (
    name TEXT    NOT NULL PRIMARY KEY,
    n    INTEGER NOT NULL
) WITHOUT ROWID;

-- Texts that were forgotten, as keyed hashes.
CREATE TABLE memory_tombstones (
    mark TEXT    NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;

-- Batches that were written, and what became of them: ids, no texts.
CREATE TABLE memory_batches (
    no           INTEGER PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    outcomes     TEXT    NOT NULL,
    UNIQUE (workspace_id, name)
);
CREATE INDEX memory_batches_at ON memory_batches (at);

-- +goose Down
DROP TABLE memory_batches;
DROP TABLE memory_tombstones;
DROP TABLE memory_counts;
DROP TABLE memory_index;
DROP TABLE memory_items;
DROP TABLE memory_scopes;
DROP TABLE memory_meta;
