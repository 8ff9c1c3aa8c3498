-- What "manifest stats" shows, added up by workspace and day (UTC, as 2026-03-02), so that it need not read records: JSON
-- of manifest.Sums over the records that are not pending. It follows from manifests and usages, and is made again from
-- them with the index of 00005: by this migration for the records that are there, with the first ones that are appended
-- after it.

-- +goose Up
CREATE TABLE day_sums (
    workspace_id TEXT NOT NULL,
    day          TEXT NOT NULL,
    sums         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, day)
);
DELETE FROM marks;
DELETE FROM mark_segments;
DELETE FROM mark_blocks;
DELETE FROM mark_chains;
INSERT INTO pending (id) SELECT id FROM manifests WHERE TRUE ON CONFLICT (id) DO NOTHING;

-- +goose Down
DROP TABLE day_sums;
