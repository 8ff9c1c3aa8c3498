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
	empty(&s.items)
	empty(&s.parts)
	empty(&s.budgets)
	empty(&s.diags)
	empty(&s.inSection)
	empty(&s.inContext)
	empty(&s.owners)
	empty(&s.fragments)
	empty(&s.texts)
	empty(&s.cuts)
}

func empty[T any](list *[]T) {
	clear(*list)
	*list = (*list)[:0]
}
