-- How many values each plugin keeps, and how many bytes they and their ids have:
-- what bounds a plugin, without counting its rows. Who changes states changes this
-- row first, so that changes of one plugin wait for each other.

-- +goose Up
CREATE TABLE state_totals (
    plugin TEXT   NOT NULL PRIMARY KEY,
    kept   BIGINT NOT NULL,
    bytes  BIGINT NOT NULL
);
INSERT INTO state_totals (plugin, kept, bytes)
    SELECT plugin, count(*), sum(octet_length(workspace_id) + octet_length(session_id) + octet_length(value))
    FROM states GROUP BY plugin;

-- +goose Down
DROP TABLE state_totals;
