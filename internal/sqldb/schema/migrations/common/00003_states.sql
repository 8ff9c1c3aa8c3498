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
CREATE INDEX states_oldest ON states (plugin, workspace_id, updated_at);

-- How many bytes each plugin keeps, in all and for each workspace: what bounds a
-- plugin, and says whose values go first when it is full, without counting its rows.
-- A value counts with its ids and 640 bytes more. Who changes states changes the
-- plugin's total first, so that changes of one plugin wait for each other.
CREATE TABLE state_totals (
    plugin TEXT   NOT NULL PRIMARY KEY,
    bytes  BIGINT NOT NULL
);
CREATE TABLE state_shares (
    plugin       TEXT   NOT NULL,
    workspace_id TEXT   NOT NULL,
    bytes        BIGINT NOT NULL,
    PRIMARY KEY (plugin, workspace_id)
);
CREATE INDEX state_shares_largest ON state_shares (plugin, bytes);

-- +goose Down
DROP TABLE state_shares;
DROP TABLE state_totals;
DROP TABLE states;
