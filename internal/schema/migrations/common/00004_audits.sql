-- Audit contributions that are in no manifest: of phases after the prompt, of
-- background work, outside of a turn. details is JSON, or empty where its
-- fingerprint alone is kept; at in nanoseconds since 1970, UTC; place is that among
-- those that were kept together.

-- +goose Up
CREATE TABLE audits (
    at                  BIGINT NOT NULL,
    place               BIGINT NOT NULL,
    workspace_id        TEXT   NOT NULL,
    thread_id           TEXT   NOT NULL,
    turn_id             TEXT   NOT NULL,
    session_id          TEXT   NOT NULL,
    phase               TEXT   NOT NULL,
    plugin              TEXT   NOT NULL,
    plugin_version      TEXT   NOT NULL,
    subscription_id     TEXT   NOT NULL,
    event_kind          TEXT   NOT NULL,
    contribution_hash   TEXT   NOT NULL,
    details             TEXT   NOT NULL,
    details_fingerprint TEXT   NOT NULL,
    details_bytes       BIGINT NOT NULL
);
CREATE INDEX audits_at ON audits (at);
CREATE INDEX audits_thread ON audits (thread_id, workspace_id, at);

-- +goose Down
DROP TABLE audits;
