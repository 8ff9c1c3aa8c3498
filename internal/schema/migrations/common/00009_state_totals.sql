-- How many bytes each plugin keeps, in all and for each workspace: what bounds a
-- plugin, and says whose values go first when it is full, without counting its rows.
-- A value counts with its ids and 640 bytes more. Who changes states changes the
-- plugin's total first, so that changes of one plugin wait for each other.

-- +goose Up
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
CREATE INDEX states_oldest ON states (plugin, workspace_id, updated_at);
INSERT INTO state_shares (plugin, workspace_id, bytes)
    SELECT plugin, workspace_id, sum(640 + octet_length(workspace_id) + octet_length(session_id) + octet_length(value))
    FROM states GROUP BY plugin, workspace_id;
INSERT INTO state_totals (plugin, bytes)
    SELECT plugin, sum(bytes) FROM state_shares GROUP BY plugin;

-- +goose Down
DROP INDEX states_oldest;
DROP TABLE state_shares;
DROP TABLE state_totals;
