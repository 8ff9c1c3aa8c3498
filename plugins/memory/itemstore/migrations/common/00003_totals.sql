-- The number of items and the sum of their lengths, by a number of memory_scopes: that
-- of the scope, that of its workspace's rest, that of a user everywhere.

-- +goose Up
INSERT INTO memory_counts (shelf, name, n)
WITH shelves (shelf, scope_no) AS (
    SELECT no, no FROM memory_scopes
    UNION ALL
    SELECT r.no, s.no FROM memory_scopes s JOIN memory_scopes r ON r.workspace_id = s.workspace_id AND r.scope = 'rest'
    WHERE s.scope <> 'workspace'
    UNION ALL
    SELECT e.no, s.no FROM memory_scopes s JOIN memory_scopes e ON e.scope = 'everywhere' AND e.scope_id = s.scope_id
    WHERE s.scope = 'user'
), totals (shelf, items, length) AS (
    SELECT v.shelf, count(*), sum(i.length) FROM shelves v JOIN memory_items i ON i.scope_no = v.scope_no
    WHERE i.superseded_by IS NULL GROUP BY v.shelf
)
SELECT shelf, '#items', items FROM totals
UNION ALL
SELECT shelf, '#length', length FROM totals;

-- +goose Down
DELETE FROM memory_counts WHERE name IN ('#items', '#length');
