package merge

import "github.com/grapnelhq/grapnel/phases"

// Scratch is memory that merges use one after the other. The zero value is ready for use; it is not safe for
// concurrent use.
type Scratch struct {
	items     []item // all contributions in plan order; claims point into it
	parts     []Part
	budgets   []textBudget // what is left, by reply
	diags     []placedDiagnostic
	inSection []claim[*phases.PromptSection]
	inContext []claim[*phases.PromptContext]
	owners    []section
	fragments []fragment
	texts     []string
	cuts      []phases.Truncation
}

// Clear forgets what the last merge has left, and keeps the memory.
func (s *Scratch) Clear() {
	*s = Scratch{
		items: emptied(s.items), parts: emptied(s.parts), budgets: emptied(s.budgets), diags: emptied(s.diags),
		inSection: emptied(s.inSection), inContext: emptied(s.inContext), owners: emptied(s.owners),
		fragments: emptied(s.fragments), texts: emptied(s.texts), cuts: emptied(s.cuts),
	}
}

func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}
