-- Statistics by what is searched: a question is answered by those of what its asker
-- sees, and by nobody else's.

-- +goose Up
-- By a number of memory_scopes, in how many of its items each term is; "#items" and
-- "#length" are sums over these items. What is 0 has no row. Who writes only adds rows
-- to memory_deltas, and one of the shelf 0, so that nobody waits for a common term's
-- row; now and then one of them adds these up.
DROP TABLE memory_deltas;
DROP TABLE memory_counts;
CREATE TABLE memory_counts (
    shelf INTEGER NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    n     BIGINT NOT NULL,
    PRIMARY KEY (shelf, name)
);
CREATE TABLE memory_deltas (
    shelf INTEGER NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    n     BIGINT NOT NULL
);
CREATE INDEX memory_deltas_name ON memory_deltas (shelf, name);
-- The program makes the index and the statistics again: see Store.rebuild.
UPDATE memory_meta SET value = '' WHERE name = 'recall_version' AND EXISTS (SELECT 1 FROM memory_items);

-- +goose Down
DROP TABLE memory_deltas;
DROP TABLE memory_counts;
CREATE TABLE memory_counts (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    n    BIGINT NOT NULL
);
CREATE TABLE memory_deltas (
    name TEXT COLLATE "C" NOT NULL,
    n    BIGINT NOT NULL
);
CREATE INDEX memory_deltas_name ON memory_deltas (name);
UPDATE memory_meta SET value = '' WHERE name = 'recall_version';
