package itemstore

import (
	"context"
	"encoding/json"
	"time"
)

// keepBatches is how long it is known that a batch was written.
const keepBatches = 30 * 24 * time.Hour

// pruneBatches is how many names of older ones each new one takes away.
const pruneBatches = 8

// happened is one outcome as it is kept: without anything that was said.
type happened struct {
	Change   Change   `json:"change"`
	ID       string   `json:"id,omitempty"`
	Replaced []string `json:"replaced,omitempty"`
}

// claim takes the key of the batch. It reports that it was taken, and what became of
// that batch.
func (w *remembering) claim(ctx context.Context) (taken bool, outcomes []Outcome, err error) {
	n, err := w.tx.exec(ctx, `INSERT INTO memory_batches (workspace_id, name, at, outcomes) VALUES ($1, $2, $3, '[]')
		ON CONFLICT (workspace_id, name) DO UPDATE SET at = excluded.at, outcomes = excluded.outcomes WHERE memory_batches.at < $4`,
		w.batch.WorkspaceID, w.batch.Key, nanos(w.now), nanos(w.now.Add(-keepBatches)))
	if err != nil || n > 0 {
		return false, nil, err
	}
	var text string
	err = w.tx.one(ctx, "SELECT outcomes FROM memory_batches WHERE workspace_id = $1 AND name = $2",
		[]any{w.batch.WorkspaceID, w.batch.Key}, []any{&text})
	if err != nil {
		return true, nil, err
	}
	var kept []happened
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return true, nil, err
	}
	for _, h := range kept {
		outcome := Outcome{Change: h.Change, Replaced: h.Replaced, Repeated: true}
		r, err := w.tx.row(ctx, rowByID, h.ID)
		if err != nil {
			return true, nil, err
		}
		if r != nil && r.WorkspaceID == w.batch.WorkspaceID {
			outcome.Item = r.Item
		}
		outcomes = append(outcomes, outcome)
	}
	return true, outcomes, nil
}

// record keeps what became of the batch, and takes some old ones away.
func (w *remembering) record(ctx context.Context, outcomes []Outcome) error {
	kept := make([]happened, len(outcomes))
	for n, o := range outcomes {
		kept[n] = happened{o.Change, o.Item.ID, o.Replaced}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	_, err = w.tx.exec(ctx, "UPDATE memory_batches SET outcomes = $3 WHERE workspace_id = $1 AND name = $2", w.batch.WorkspaceID, w.batch.Key, string(text))
	if err != nil {
		return err
	}
	_, err = w.tx.exec(ctx, "DELETE FROM memory_batches WHERE no IN (SELECT no FROM memory_batches WHERE at < $1 ORDER BY at LIMIT $2"+w.tx.phrase.skip+")",
		nanos(w.now.Add(-keepBatches)), pruneBatches)
	return err
}
