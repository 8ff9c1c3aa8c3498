-- The sign-off of each thread: which manifests should be there. first_seq and
-- first_prev move when retention takes manifests away at the front, next_seq and
-- last_hash with each one that is appended; the signature covers all of it. The
-- row is also what appending to a thread locks.

-- +goose Up
CREATE TABLE chains (
    thread_id    TEXT   NOT NULL,
    workspace_id TEXT   NOT NULL,
    first_seq    BIGINT NOT NULL,
    first_prev   TEXT   NOT NULL,
    next_seq     BIGINT NOT NULL,
    last_hash    TEXT   NOT NULL,
    signature    TEXT   NOT NULL,
    PRIMARY KEY (thread_id, workspace_id)
);

-- +goose Down
DROP TABLE chains;
