package manifest

import "iter"

// Entry is a record and what the provider reported for its prompt; nil if it has not.
type Entry struct {
	Outline Outline
	Usage   *Usage
}

// BlamedTurn says what one prompt cost the provider's cache. A list of them is
// the output of "grapnel manifest blame".
type BlamedTurn struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	Seq         uint64 `json:"seq"`
	TurnID      string `json:"turn_id"`
	ManifestID  string `json:"manifest_id"`
	// Break is how the prompt differs from the previous one of the thread; none for the first.
	Break
	// OfAgent says that an agent behind hooks compiles the request: what broke its cache is not known.
	OfAgent bool `json:"of_agent,omitempty"`
	// Expected is true behind a compaction: the history was replaced, so the
	// cache was lost whatever the sections did.
	Expected bool `json:"expected"`
	// Actual is how many tokens came out of the cache, as the provider reported; null until it has.
	Actual *int `json:"actual"`
}

// Broke reports whether the prompt broke the cache of the previous one without need: a compaction is expected to break it.
// All counts of breaks use it.
func (t *BlamedTurn) Broke() bool { return t.Cause != "" && !t.Expected }

// blame compares a prompt that was sent with the one before it, if there is one.
func blame(before, e *Entry) BlamedTurn {
	o := &e.Outline
	row := BlamedTurn{WorkspaceID: o.WorkspaceID, ThreadID: o.ThreadID, Seq: o.Seq, TurnID: o.TurnID, ManifestID: o.ManifestID, OfAgent: o.OfAgent}
	if e.Usage != nil {
		row.Actual = &e.Usage.CacheReadTokens
	}
	if before != nil && o.Whole() {
		row.Expected = o.afterReset(&before.Outline)
		row.Break = Compare(&before.Outline, o, before.Usage, e.Usage)
	}
	return row
}

// Blame compares each prompt with the one before it in the same workspace and thread. The entries are in the order in
// which records were appended, and may be of several threads. It yields one row per prompt that was sent, in that
// order, and holds one entry per thread. The first error ends it.
func Blame(entries iter.Seq2[Entry, error]) iter.Seq2[BlamedTurn, error] {
	return func(yield func(BlamedTurn, error) bool) {
		last := map[[2]string]*Entry{}
		for e, err := range entries {
			if err != nil {
				yield(BlamedTurn{}, err)
				return
			}
			if !e.Outline.Sent {
				continue
			}
			thread := [2]string{e.Outline.WorkspaceID, e.Outline.ThreadID}
			row := blame(last[thread], &e)
			if e.Outline.Whole() {
				last[thread] = &e
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}
