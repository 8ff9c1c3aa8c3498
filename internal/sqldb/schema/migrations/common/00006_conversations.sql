-- Conversations of threads, which a gateway keeps for its clients. gone is 1 once the
-- thread or its workspace was deleted: then nobody reads the conversation any more,
-- another one may begin under the same ids, and what is left is removed piece by piece.
-- Entries are JSON, numbered from 0 within a conversation and never changed. The status
-- of a turn is empty until it ends. A summary stands for all entries up to through.
-- Times are nanoseconds since 1970, UTC.

-- +goose Up
CREATE TABLE conversations (
    id           TEXT   NOT NULL PRIMARY KEY,
    workspace_id TEXT   NOT NULL,
    thread_id    TEXT   NOT NULL,
    gone         BIGINT NOT NULL,
    next_seq     BIGINT NOT NULL
);
CREATE UNIQUE INDEX conversations_live ON conversations (workspace_id, thread_id) WHERE gone = 0;
CREATE INDEX conversations_gone ON conversations (id) WHERE gone = 1;
CREATE TABLE conversation_entries (
    conversation_id TEXT   NOT NULL,
    seq             BIGINT NOT NULL,
    entry_id        TEXT   NOT NULL,
    turn_id         TEXT   NOT NULL,
    actor           TEXT   NOT NULL,
    created_at      BIGINT NOT NULL,
    bytes           BIGINT NOT NULL,
    entry           TEXT   NOT NULL,
    PRIMARY KEY (conversation_id, seq)
);
CREATE UNIQUE INDEX conversation_entries_id ON conversation_entries (conversation_id, entry_id);
CREATE TABLE conversation_turns (
    conversation_id TEXT NOT NULL,
    turn_id         TEXT NOT NULL,
    status          TEXT NOT NULL,
    PRIMARY KEY (conversation_id, turn_id)
);
CREATE TABLE conversation_summaries (
    conversation_id TEXT   NOT NULL,
    through         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    summary         TEXT   NOT NULL,
    PRIMARY KEY (conversation_id, through)
);

-- +goose Down
DROP TABLE conversation_summaries;
DROP TABLE conversation_turns;
DROP TABLE conversation_entries;
DROP TABLE conversations;
