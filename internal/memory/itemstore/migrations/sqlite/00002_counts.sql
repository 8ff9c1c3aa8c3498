-- Statistics by what is searched: a question is answered by those of what its asker
-- sees, and by nobody else's.

-- +goose Up
-- By a number of memory_scopes, in how many of its items each term is; "#items" and
-- "#length" are sums over these items. What is 0 has no row.
DROP TABLE memory_counts;
CREATE TABLE memory_counts (
    shelf INTEGER NOT NULL,
    name  TEXT    NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (shelf, name)
) WITHOUT ROWID;
-- The program makes the index and the statistics again: see Store.rebuild.
UPDATE memory_meta SET value = '' WHERE name = 'recall_version' AND EXISTS (SELECT 1 FROM memory_items);

-- +goose Down
DROP TABLE memory_counts;
CREATE TABLE memory_counts (
    name TEXT    NOT NULL PRIMARY KEY,
    n    INTEGER NOT NULL
) WITHOUT ROWID;
UPDATE memory_meta SET value = '' WHERE name = 'recall_version';
