-- What plugins keep from turn to turn by the host service "state": one value, as
-- JSON, for each workspace, session and plugin. updated_at in nanoseconds since
-- 1970, UTC.

-- +goose Up
CREATE TABLE states (
    workspace_id TEXT   NOT NULL,
    session_id   TEXT   NOT NULL,
    plugin       TEXT   NOT NULL,
    value        TEXT   NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, session_id, plugin)
);

-- +goose Down
DROP TABLE states;
