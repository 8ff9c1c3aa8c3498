-- Threads of one workspace are listed by when they began, without reading those of others.

-- +goose Up
CREATE INDEX chains_workspace ON chains (workspace_id, id);

-- +goose Down
DROP INDEX chains_workspace;
