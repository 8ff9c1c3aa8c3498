package api

import (
	"iter"

	"github.com/grapnelhq/grapnel/manifest"
)

// BlameLimit is how many prompts of a thread are judged unless more are asked for.
const BlameLimit = 100

// Blame is what blame says of a thread.
type Blame struct {
	Turns []manifest.BlamedTurn `json:"turns" jsonschema:"one entry per prompt that was sent, oldest first; of several workspaces one after another"`
	Older bool                  `json:"older" jsonschema:"there are older prompts, which are not judged here"`
}

// BlameOf judges the entries of a thread and calls seen for each. With a limit each workspace brings one entry more
// than that, which the oldest is compared with.
func BlameOf(entries iter.Seq2[manifest.Entry, error], limit int, seen func()) (Blame, error) {
	b := Blame{Turns: []manifest.BlamedTurn{}}
	from := 0 // where the workspace begins
	for row, err := range manifest.Blame(entries) {
		if err != nil {
			return b, err
		}
		seen()
		if from < len(b.Turns) && b.Turns[from].WorkspaceID != row.WorkspaceID {
			from = len(b.Turns)
		}
		b.Turns = append(b.Turns, row)
		if limit > 0 && len(b.Turns)-from > limit {
			b.Turns, b.Older = append(b.Turns[:from], b.Turns[from+1:]...), true
		}
	}
	return b, nil
}
