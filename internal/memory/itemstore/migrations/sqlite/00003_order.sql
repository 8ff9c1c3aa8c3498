-- The items in effect of a scope in the order of their ids, which is that of time: a recall
-- reads the neighbours of an item in this index alone. superseded_by is null in all of it,
-- and there because SQLite reads the rows of an index that lacks a column of the condition.

-- +goose Up
CREATE INDEX memory_items_order ON memory_items (scope_no, id, superseded_by) WHERE superseded_by IS NULL;

-- +goose Down
DROP INDEX memory_items_order;
