-- The items in effect of a scope in the order of their ids, which is that of time: a recall
-- reads the neighbours of an item in this index alone.

-- +goose Up
CREATE INDEX memory_items_order ON memory_items (scope_no, id) INCLUDE (seq) WHERE superseded_by IS NULL;

-- +goose Down
DROP INDEX memory_items_order;
