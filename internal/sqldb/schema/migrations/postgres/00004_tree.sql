-- The thread tree: workspaces, folders and threads in them, the AGENTS.md
-- documents kept at a workspace's root and at folders, and the log of changes.
--
-- Nothing is deleted but by retention: deleted_at says when something was taken
-- out of the tree. Times are in nanoseconds since 1970, UTC; a folder_id or
-- parent_id that is null is the root. Contents stand last in their rows, so that
-- what stands before is read without them. The collation "C" compares bytes: ids are
-- listed in the same order by every database.

-- +goose Up
CREATE TABLE tree_workspaces (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    deleted_at BIGINT
);

-- Walks go from a folder's node to its parent's: numbers are found sooner than ids.
-- has_doc says that the folder has an active document; it goes with the document's
-- status, so that a walk need not look for documents in all folders.
CREATE TABLE tree_folders (
    node         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    parent       BIGINT,
    parent_id    TEXT COLLATE "C",
    has_doc      BOOLEAN NOT NULL DEFAULT FALSE,
    name         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    created_by   TEXT NOT NULL,
    deleted_at   BIGINT,
    UNIQUE (workspace_id, id)
);
CREATE INDEX tree_folders_parent ON tree_folders (workspace_id, parent_id) WHERE deleted_at IS NULL;

CREATE TABLE tree_threads (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    folder_id    TEXT COLLATE "C",
    title        TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    created_by   TEXT NOT NULL,
    deleted_at   BIGINT,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX tree_threads_folder ON tree_threads (workspace_id, folder_id) WHERE deleted_at IS NULL;

-- archived_seq is the number in the log of changes, which orders archived ones:
-- clocks may stand still.
CREATE TABLE thread_agents_doc (
    id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id   TEXT COLLATE "C" NOT NULL,
    folder_id      TEXT COLLATE "C",
    status         TEXT NOT NULL,
    title          TEXT NOT NULL,
    content_sha256 TEXT NOT NULL,
    version        BIGINT NOT NULL,
    chars          BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    archived_at    BIGINT,
    archived_seq   BIGINT,
    created_by     TEXT NOT NULL,
    updated_by     TEXT NOT NULL,
    content        TEXT NOT NULL
);
-- At most one live document a scope.
CREATE UNIQUE INDEX uq_thread_agents_doc_root_active ON thread_agents_doc (workspace_id)
    WHERE folder_id IS NULL AND status <> 'archived';
CREATE UNIQUE INDEX uq_thread_agents_doc_folder_active ON thread_agents_doc (workspace_id, folder_id)
    WHERE folder_id IS NOT NULL AND status <> 'archived';
CREATE INDEX thread_agents_doc_archived ON thread_agents_doc (workspace_id, folder_id, archived_seq)
    WHERE status = 'archived';

CREATE TABLE thread_agents_doc_revision (
    doc_id         TEXT COLLATE "C" NOT NULL,
    version        BIGINT NOT NULL,
    content_sha256 TEXT NOT NULL,
    chars          BIGINT NOT NULL,
    saved_at       BIGINT NOT NULL,
    saved_by       TEXT NOT NULL,
    save_reason    TEXT NOT NULL,
    content        TEXT NOT NULL,
    PRIMARY KEY (doc_id, version)
);
CREATE INDEX thread_agents_doc_revision_autosaved ON thread_agents_doc_revision (saved_at)
    WHERE save_reason = 'autosave';

-- seq is the number of its transaction, and in the bits from 48 on the log's
-- generation. Transactions commit in another order: readers take only what is
-- older than all that run. What the columns from item_id on mean depends on kind:
-- what was changed, as it was then.
CREATE TABLE tree_changes (
    id             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq            BIGINT NOT NULL,
    workspace_id   TEXT COLLATE "C" NOT NULL,
    kind           TEXT NOT NULL,
    action         TEXT NOT NULL,
    actor          TEXT NOT NULL,
    at             BIGINT NOT NULL,
    item_id        TEXT COLLATE "C" NOT NULL,
    parent_id      TEXT COLLATE "C",
    name           TEXT,
    status         TEXT,
    content_sha256 TEXT,
    version        BIGINT,
    chars          BIGINT
);
CREATE INDEX tree_changes_seq ON tree_changes (seq, id);

-- One row about the log of changes: up to where changes were taken away, and where
-- its numbers come from. A restored database has another origin, where the numbers
-- mean nothing: its generation is one higher.
CREATE TABLE tree_log (
    id         BIGINT  PRIMARY KEY CHECK (id = 1),
    origin     TEXT NOT NULL,
    generation BIGINT NOT NULL,
    floor      BIGINT NOT NULL
);
INSERT INTO tree_log (id, origin, generation, floor) VALUES (1, '', 0, 0);

-- +goose Down
DROP TABLE tree_log;
DROP TABLE tree_changes;
DROP TABLE thread_agents_doc_revision;
DROP TABLE thread_agents_doc;
DROP TABLE tree_threads;
DROP TABLE tree_folders;
DROP TABLE tree_workspaces;
