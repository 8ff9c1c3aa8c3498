-- Background work. Times are seconds since 1970 by the database's clock. A job is waiting (until it is due), running,
-- dead, or done: of one that is done only the key is kept, as its SHA-256.

-- +goose Up
CREATE TABLE jobs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    state     TEXT    NOT NULL DEFAULT 'waiting',
    plugin    TEXT    NOT NULL,
    key       TEXT    UNIQUE,
    job       TEXT    NOT NULL,
    -- How often it was tried, may be tried, and was requeued; begun is the attempt that must not be repeated.
    attempt   INTEGER NOT NULL DEFAULT 0,
    attempts  INTEGER NOT NULL,
    requeued  INTEGER NOT NULL DEFAULT 0,
    begun     INTEGER NOT NULL DEFAULT 0,
    -- The cause and text of the last failure, and why it was requeued.
    code      TEXT    NOT NULL DEFAULT '',
    error     TEXT    NOT NULL DEFAULT '',
    why       TEXT    NOT NULL DEFAULT '',
    -- The processes that added it, and that work on it or did last.
    added_by  TEXT    NOT NULL,
    holder    TEXT    NOT NULL DEFAULT '',
    added     REAL    NOT NULL,
    due       REAL    NOT NULL,
    renewed   REAL    NOT NULL DEFAULT 0,
    ended     REAL    NOT NULL DEFAULT 0
);
CREATE INDEX jobs_state ON jobs (state, plugin, due);
CREATE INDEX jobs_due ON jobs (due, id) WHERE state = 'waiting';
CREATE INDEX jobs_ended ON jobs (state, ended) WHERE ended > 0;

-- +goose Down
DROP TABLE jobs;
