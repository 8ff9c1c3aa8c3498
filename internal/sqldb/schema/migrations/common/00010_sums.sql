-- Sums by day count each run of a hook once (runs_before), and the tokens of tools: what is kept is made again, as in 00009.

-- +goose Up
DELETE FROM day_sums;
DELETE FROM marks;
DELETE FROM mark_segments;
DELETE FROM mark_blocks;
DELETE FROM mark_chains;
INSERT INTO pending (id) SELECT id FROM manifests WHERE TRUE ON CONFLICT (id) DO NOTHING;

-- +goose Down
SELECT 1;
