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
CREATE VIRTUAL TABLE memory_tokens USING fts5vocab (memory_index, 'row');
INSERT INTO memory_counts (shelf, name, n)
SELECT CAST(substr(term, 1, instr(term, 'x') - 1) AS INTEGER), substr(term, instr(term, 'x') + 1), doc
FROM memory_tokens WHERE length(term) > instr(term, 'x');
DROP TABLE memory_tokens;

-- +goose Down
DROP TABLE memory_counts;
CREATE TABLE memory_counts (
    name TEXT    NOT NULL PRIMARY KEY,
    n    INTEGER NOT NULL
) WITHOUT ROWID;
UPDATE memory_meta SET value = '' WHERE name = 'recall_version';
