-- The first two are promises of the log: ids are unique, and no two manifests of
-- a thread have one number. The second one also serves lists of a thread, the
-- third those of a workspace, newest first. Each index costs every append a page.

-- +goose Up
CREATE UNIQUE INDEX manifests_manifest_id ON manifests (manifest_id);
CREATE UNIQUE INDEX manifests_seq ON manifests (thread_id, workspace_id, seq);
CREATE INDEX manifests_workspace ON manifests (workspace_id, id);

-- +goose Down
DROP INDEX manifests_workspace;
DROP INDEX manifests_seq;
DROP INDEX manifests_manifest_id;
