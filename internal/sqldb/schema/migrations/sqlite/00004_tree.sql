-- The thread tree: workspaces, folders and threads in them, the AGENTS.md
-- documents kept at a workspace's root and at folders, and the log of changes.
--
-- Nothing is deleted but by retention: deleted_at says when something was taken
-- out of the tree. Times are in nanoseconds since 1970, UTC; a folder_id or
-- parent_id that is null is the root. Contents stand last in their rows, so that
-- what stands before is read without them.

-- +goose Up
CREATE TABLE tree_workspaces (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    deleted_at INTEGER
) WITHOUT ROWID;

-- Walks go from a folder's node to its parent's: numbers are found sooner than ids.
-- has_doc says that the folder has an active document; it goes with the document's
-- status, so that a walk need not look for documents in all folders.
CREATE TABLE tree_folders (
    node         INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    parent       INTEGER,
    parent_id    TEXT,
    has_doc      BOOLEAN NOT NULL DEFAULT FALSE,
    name         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    deleted_at   INTEGER,
    UNIQUE (workspace_id, id)
);
CREATE INDEX tree_folders_parent ON tree_folders (workspace_id, parent_id) WHERE deleted_at IS NULL;

CREATE TABLE tree_threads (
    workspace_id TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    folder_id    TEXT,
    title        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    deleted_at   INTEGER,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE INDEX tree_threads_folder ON tree_threads (workspace_id, folder_id) WHERE deleted_at IS NULL;

-- archived_seq is the number in the log of changes, which orders archived ones:
-- clocks may stand still.
CREATE TABLE thread_agents_doc (
    id             TEXT    NOT NULL PRIMARY KEY,
    workspace_id   TEXT    NOT NULL,
    folder_id      TEXT,
    status         TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    content_sha256 TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    chars          INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    archived_at    INTEGER,
    archived_seq   INTEGER,
    created_by     TEXT    NOT NULL,
    updated_by     TEXT    NOT NULL,
    content        TEXT    NOT NULL
);
-- At most one live document a scope.
CREATE UNIQUE INDEX uq_thread_agents_doc_root_active ON thread_agents_doc (workspace_id)
    WHERE folder_id IS NULL AND status <> 'archived';
CREATE UNIQUE INDEX uq_thread_agents_doc_folder_active ON thread_agents_doc (workspace_id, folder_id)
    WHERE folder_id IS NOT NULL AND status <> 'archived';
-- A tree is listed from here: the rows themselves are as long as their texts.
CREATE INDEX thread_agents_doc_summary ON thread_agents_doc
    (workspace_id, folder_id, id, status, content_sha256, version, chars, updated_at)
    WHERE folder_id IS NOT NULL AND status <> 'archived';
CREATE INDEX thread_agents_doc_archived ON thread_agents_doc (workspace_id, folder_id, archived_seq)
    WHERE status = 'archived';

CREATE TABLE thread_agents_doc_revision (
    doc_id         TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    content_sha256 TEXT    NOT NULL,
    chars          INTEGER NOT NULL,
    saved_at       INTEGER NOT NULL,
    saved_by       TEXT    NOT NULL,
    save_reason    TEXT    NOT NULL,
    content        TEXT    NOT NULL,
    PRIMARY KEY (doc_id, version)
);
CREATE INDEX thread_agents_doc_revision_autosaved ON thread_agents_doc_revision (saved_at)
    WHERE save_reason = 'autosave';

-- seq is the id of the first change of its transaction. What the columns from
-- item_id on mean depends on kind: what was changed, as it was then.
CREATE TABLE tree_changes (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    seq            INTEGER NOT NULL,
    workspace_id   TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    action         TEXT    NOT NULL,
    actor          TEXT    NOT NULL,
    at             INTEGER NOT NULL,
    item_id        TEXT    NOT NULL,
    parent_id      TEXT,
    name           TEXT,
    status         TEXT,
    content_sha256 TEXT,
    version        INTEGER,
    chars          INTEGER
);
INSERT INTO sqlite_sequence (name, seq) VALUES ('tree_changes', 0);

-- One row about the log of changes: up to where changes were taken away.
CREATE TABLE tree_log (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    origin     TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    floor      INTEGER NOT NULL
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
