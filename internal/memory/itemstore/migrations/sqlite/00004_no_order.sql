-- Recalls no longer read the neighbours of an item.

-- +goose Up
DROP INDEX memory_items_order;

-- +goose Down
CREATE INDEX memory_items_order ON memory_items (scope_no, id, superseded_by) WHERE superseded_by IS NULL;
