package manifest

// BlamedTurn says what one prompt cost the provider's cache. A list of them is
// the output of "grapnel manifest blame".
type BlamedTurn struct {
	TurnID     string `json:"turn_id"`
	ManifestID string `json:"manifest_id"`
	// BrokeAt is the first section that differs from the previous prompt of the
	// thread, in order: changed, added, moved or removed. It is empty for the
	// first prompt and where nothing broke.
	BrokeAt string `json:"broke_at"`
	// Owner is the owner of the section BrokeAt.
	Owner string `json:"owner"`
	// TokensBehind is what stands from BrokeAt on and had to be read anew; 0
	// without a tokenizer.
	TokensBehind int `json:"tokens_behind"`
	// Expected is true behind a compaction: the history was replaced, so the
	// cache was lost whatever the sections did.
	Expected bool `json:"expected"`
}

// Blame compares each prompt with the one before it in the same workspace and
// thread, and names the section that broke the prefix which a provider keeps.
// The list is in the order in which records were appended and may hold several
// threads. The result has one entry per record, in that order, and is never nil.
//
// A record whose prompt was never sent (see [Manifest.Sent]) broke nothing, and the
// next prompt is compared with the one before it. A prompt stands behind a
// compaction when its session is the previous prompt's and its epoch a later one.
func Blame(list []*Manifest) []BlamedTurn {
	out := make([]BlamedTurn, 0, len(list))
	last := map[[2]string]*Manifest{}
	for _, m := range list {
		row := BlamedTurn{TurnID: m.TurnID, ManifestID: m.ManifestID}
		thread := [2]string{m.WorkspaceID, m.ThreadID}
		if before := last[thread]; before != nil && m.Sent() {
			row.blame(before, m)
		}
		if m.Sent() {
			last[thread] = m
		}
		out = append(out, row)
	}
	return out
}

func (t *BlamedTurn) blame(before, m *Manifest) {
	t.Expected = before.SessionID == m.SessionID && m.Epoch > before.Epoch
	at, broke := FirstBreak(before.Sections, m.Sections)
	if !broke {
		return
	}
	t.BrokeAt, t.Owner = at.SectionID, at.Owner
	for _, s := range m.Sections[at.Index:] {
		if s.Tokens != nil {
			t.TokensBehind += *s.Tokens
		}
	}
}

// Sent reports whether the record is of a prompt that was given to the host to
// be sent. That of a turn that was blocked has no sections, or says nothing of the
// cache. A prompt without tools and a stable part may have nothing to plan for; it
// then departs from the one before it, or it would have a dynamic part to keep.
func (m *Manifest) Sent() bool {
	c := &m.Cache
	return len(m.Sections) > 0 && (c.Plan.Key != "" || len(c.Plan.Breakpoints) > 0 || c.BrokeAt != "")
}
