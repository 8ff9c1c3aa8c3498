-- What is remembered. Times are in nanoseconds since 1970, UTC; 0 is never. Names
-- and ids compare by their bytes, as SQLite does.

-- +goose Up
-- secret: what tombstones are keyed with, hex. recall_version: the rules by which
-- the index was made. untidy: forgotten bytes may still be in the tables.
CREATE TABLE memory_meta (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Scopes have numbers, which never change. Besides scopes there are "rest", all of a
-- workspace but its own items, and "everywhere", a user's items in all workspaces:
-- an item stands in the index under each number that it is to be found by.
CREATE TABLE memory_scopes (
    no           INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    scope        TEXT COLLATE "C" NOT NULL,
    scope_id     TEXT COLLATE "C" NOT NULL,
    UNIQUE (workspace_id, scope, scope_id)
);
CREATE INDEX memory_scopes_of ON memory_scopes (scope, scope_id);

-- seq grows with each change of an item, so that the newest have the greatest. home
-- is the number of the workspace. superseded_by is null for items in effect, and only
-- those are in the index and in the statistics. terms are those of the text, sorted,
-- with ":n" behind those that occur more than once; length is how many there are.
CREATE SEQUENCE memory_seq;
CREATE TABLE memory_items (
    seq           BIGINT  NOT NULL DEFAULT nextval('memory_seq') PRIMARY KEY,
    id            TEXT COLLATE "C" NOT NULL UNIQUE,
    home          INTEGER NOT NULL,
    scope_no      INTEGER NOT NULL,
    category      TEXT COLLATE "C" NOT NULL,
    source        TEXT    NOT NULL,
    slot          TEXT COLLATE "C" NOT NULL,
    hash          TEXT COLLATE "C" NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    last_used_at  BIGINT  NOT NULL,
    uses          BIGINT  NOT NULL,
    supersedes    TEXT    NOT NULL,
    superseded_by TEXT COLLATE "C",
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

-- The index: by a number of memory_scopes and a term, which is empty for what is
-- pinned, the seq of each item. The order of the key is what it is for: the newest
-- items of a term, however many there are.
CREATE TABLE memory_index (
    shelf INTEGER NOT NULL,
    term  TEXT COLLATE "C" NOT NULL,
    seq   BIGINT  NOT NULL,
    PRIMARY KEY (shelf, term, seq)
);

-- In how many items each term is; "#items" and "#length" are sums over all items.
-- Who writes only adds rows to memory_deltas, so that nobody waits for a common
-- term's row; now and then one of them adds these up.
CREATE TABLE memory_counts (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    n    BIGINT NOT NULL
);
CREATE TABLE memory_deltas (
    name TEXT COLLATE "C" NOT NULL,
    n    BIGINT NOT NULL
);
CREATE INDEX memory_deltas_name ON memory_deltas (name);

-- Texts that were forgotten, as keyed hashes.
CREATE TABLE memory_tombstones (
    mark TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at   BIGINT NOT NULL
);

-- Batches that were written, and what became of them: ids, no texts.
CREATE TABLE memory_batches (
    no           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    at           BIGINT NOT NULL,
    outcomes     TEXT   NOT NULL,
    UNIQUE (workspace_id, name)
);
CREATE INDEX memory_batches_at ON memory_batches (at);

-- +goose Down
DROP TABLE memory_batches;
DROP TABLE memory_tombstones;
DROP TABLE memory_deltas;
DROP TABLE memory_counts;
DROP TABLE memory_index;
DROP TABLE memory_items;
DROP SEQUENCE memory_seq;
DROP TABLE memory_scopes;
DROP TABLE memory_meta;
