-- The first two are promises of the log: ids are unique, and no two manifests of
-- a thread have one number. The others serve lists of a thread or workspace,
-- newest first.

-- +goose Up
CREATE UNIQUE INDEX manifests_manifest_id ON manifests (manifest_id);
CREATE UNIQUE INDEX manifests_seq ON manifests (thread_id, workspace_id, seq);
CREATE INDEX manifests_thread ON manifests (thread_id, id);
CREATE INDEX manifests_workspace ON manifests (workspace_id, id);

-- +goose Down
DROP INDEX manifests_workspace;
DROP INDEX manifests_thread;
DROP INDEX manifests_seq;
DROP INDEX manifests_manifest_id;
