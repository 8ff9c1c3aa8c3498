package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// Hook is what merging must know of a subscription. It is read only, made once
// for a subscription, used by any number of goroutines, and never copied.
type Hook struct {
	// Subscription is the full id; Hook is the plugin's own name for it.
	Subscription, Hook, Plugin, PluginVersion string
	// Priority is the subscription's.
	Priority int
	// Kinds are the declared kinds.
	Kinds []phases.Kind
	// Budget bounds the text that is kept of one dispatch.
	Budget phases.TextBudget
	// Grants are the plugin's. Nil grants nothing.
	Grants *phases.Grants
	// Shadow marks a hook whose contributions are recorded and never applied.
	Shadow     bool
	Visibility phases.Visibility
	// Key is the key of fingerprints; nil leaves hashes plain.
	Key []byte

	// scratch holds *[]byte that Admit hashes in.
	scratch sync.Pool
}

// Entry is one admitted contribution. Its id is filled in. Only Admit makes
// entries, and Clone copies them.
type Entry struct {
	Value phases.Contribution
	// Hash is the fingerprint of the canonical JSON of the value with its kind,
	// under the hook's key.
	Hash string

	// text is what merging needs of its long text; nil if it has none.
	text *prepared
	// bytes is the length of the canonical JSON.
	bytes int
}

// Size is about how many bytes of memory the entry holds.
func (e *Entry) Size() int {
	const around = 512 // what is of one size, and names
	n := around + e.bytes
	if e.text != nil {
		n += len(e.text.whole)
	}
	return n
}

// Clone returns copies of entries whose values share no memory with the given
// ones that anybody could change.
func Clone(entries []Entry) []Entry {
	if len(entries) == 0 {
		return nil
	}
	out := slices.Clone(entries)
	for i := range out {
		out[i].Value = phases.CloneContribution(out[i].Value)
	}
	return out
}

// Drop is one contribution that was refused while its siblings stay.
type Drop struct {
	ContributionID string
	// Slot is the section id, policy or tool that was not granted, if there
	// is one.
	Slot string
	Kind phases.Kind
	// Cause is CauseForbidden, or CodeNotAllowed for a kind that the phase does
	// not take or the hook did not declare.
	Cause   phases.Cause
	Message string
	// Chars is the length of its text.
	Chars int
}

// Admitted is one hook's reply after the boundary.
type Admitted struct {
	Entries []Entry
	Dropped []Drop
	// Diagnostics has one entry for each dropped contribution, and what the
	// plugin attached to the others, under the plugin's name.
	Diagnostics []phases.Diagnostic
}

// Hashes returns the hashes of the entries, in order; never nil.
func (a Admitted) Hashes() []string {
	out := make([]string, len(a.Entries))
	for i := range a.Entries {
		out[i] = a.Entries[i].Hash
	}
	return out
}

// Admit checks one hook's contributions at the boundary, real, cached and
// fallback ones alike.
//
// One that is not well formed ([phases.ValidateContribution], the pointer of a
// rewrite, JSON without a canonical form), or more than
// [phases.MaxContributions], makes the whole reply invalid: the error is a
// *phases.Error with CauseInvalidReply. A kind that the phase does not take or
// the hook did not declare is dropped with CodeNotAllowed; what the operator did
// not grant is dropped with CauseForbidden; siblings stay.
//
// Admit changes nothing in cs: a contribution without an id is copied before it
// gets SUBSCRIPTION#INDEX. The entries share memory with cs otherwise.
func Admit(row phases.Row, h *Hook, cs []phases.Contribution) (Admitted, error) {
	var out Admitted
	if len(cs) > phases.MaxContributions {
		return out, invalid(row, h, fmt.Errorf("%d contributions; at most %d", len(cs), phases.MaxContributions))
	}
	if len(cs) == 0 {
		return out, nil
	}
	out.Entries = make([]Entry, 0, len(cs))
	buf := h.buffer()
	defer h.giveBack(buf)
	for i, c := range cs {
		if c == nil || reflect.ValueOf(c).IsNil() {
			return Admitted{}, invalid(row, h, fmt.Errorf("contribution %d is empty", i))
		}
		if d, refused := checkKind(row, h, c); refused {
			known := identified(h, i, c)
			out.drop(h, known, d)
			if id := c.Head().ContributionID; id != "" && id != known.Head().ContributionID {
				out.Diagnostics[len(out.Diagnostics)-1].Detail = fmt.Sprintf("%s: its id was %.80q", d.Message, id)
			}
			continue
		}
		if err := wellFormed(row, c); err != nil {
			return Admitted{}, invalid(row, h, fmt.Errorf("contribution %d: %w", i, err))
		}
		c = named(h, i, c)
		if d, refused := checkGrants(h, c); refused {
			out.drop(h, c, d)
			continue
		}
		remarks := c.Head().Diagnostics
		c = bare(c)
		hash, grown, err := hashOf(*buf, c, h.Key)
		if err != nil {
			err = phases.WithDetail("has no canonical form", err.Error(), err) // its words quote the value
			return Admitted{}, invalid(row, h, fmt.Errorf("contribution %d: %s: %w", i, c.Kind(), err))
		}
		*buf = grown
		entry := Entry{Value: c, Hash: hash, text: prepare(c), bytes: len(grown)}
		out.Entries = append(out.Entries, entry)
		out.guarded(h, &entry)
		out.pass(h, remarks)
	}
	return out, nil
}

// maxScratch is the largest buffer that is kept for the next reply.
const maxScratch = 64 << 10

// buffer lends scratch space, for giveBack.
func (h *Hook) buffer() *[]byte {
	if buf, ok := h.scratch.Get().(*[]byte); ok {
		return buf
	}
	return new([]byte)
}

func (h *Hook) giveBack(buf *[]byte) {
	if cap(*buf) <= maxScratch {
		h.scratch.Put(buf)
	}
}

// wellFormed is the structural check of one contribution whose kind is taken.
func wellFormed(row phases.Row, c phases.Contribution) error {
	if err := phases.ValidateContribution(c, row); err != nil {
		if e, ok := errors.AsType[*phases.Error](err); ok {
			return phases.WithDetail(e.Message, e.Detail, nil) // without the code: the caller adds it
		}
		return err
	}
	if r, ok := c.(*phases.Rewrite); ok {
		if _, err := parsePointer(r.Path); err != nil {
			return phases.WithDetail(string(c.Kind())+": path is not a JSON pointer", err.Error(), err)
		}
	}
	return nil
}

// invalid is the error for a reply of which nothing is taken. Values that it sent
// are details.
func invalid(row phases.Row, h *Hook, err error) error {
	return &phases.Error{
		Code: phases.CauseInvalidReply, Phase: row.Phase, Subscription: h.Subscription,
		Message: fmt.Sprintf("hook %s: %v", h.Hook, err), Err: err,
	}
}

// checkKind refuses kinds that the phase does not take or the hook did not
// declare. Kinds that need no grant need no declaration either.
func checkKind(row phases.Row, h *Hook, c phases.Contribution) (Drop, bool) {
	k := c.Kind()
	switch {
	case !row.Accepts(k):
		return Drop{Cause: phases.CodeNotAllowed, Message: fmt.Sprintf("hook %s: phase %s does not take %s", h.Hook, row.Phase, k)}, true
	case k.NeedsGrant() && !slices.Contains(h.Kinds, k):
		return Drop{Cause: phases.CodeNotAllowed, Message: fmt.Sprintf("hook %s: does not declare %s, which it sent in phase %s", h.Hook, k, row.Phase)}, true
	}
	return Drop{}, false
}

// named returns c with an id: c itself, or a copy with the id that its place in
// the reply gives it.
func named(h *Hook, index int, c phases.Contribution) phases.Contribution {
	if c.Head().ContributionID != "" {
		return c
	}
	c = phases.CloneContribution(c)
	c.Head().ContributionID = h.Subscription + "#" + strconv.Itoa(index)
	return c
}

// identified returns c with an id of which nothing else is known: one that is not
// an id is replaced by that of its place.
func identified(h *Hook, index int, c phases.Contribution) phases.Contribution {
	if id := c.Head().ContributionID; id != "" && !phases.ValidID(id) {
		c = phases.CloneContribution(c)
		c.Head().ContributionID = ""
	}
	return named(h, index, c)
}

// bare returns c without what the plugin has to say about it, which is passed on
// apart from it: c itself if that is nothing.
func bare(c phases.Contribution) phases.Contribution {
	if c.Head().Diagnostics == nil {
		return c
	}
	c = phases.CloneContribution(c)
	c.Head().Diagnostics = nil
	return c
}

// drop records a refused contribution.
func (a *Admitted) drop(h *Hook, c phases.Contribution, d Drop) {
	d.ContributionID, d.Kind, d.Chars = c.Head().ContributionID, c.Kind(), charsOf(c)
	a.Dropped = append(a.Dropped, d)
	a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
		Code: string(d.Cause), Severity: phases.SeverityWarning, Message: d.Message,
		Plugin: h.Plugin, Subscription: h.Subscription, Slot: d.Slot, Visibility: h.Visibility,
	})
}

// guarded remarks on headings that would have passed for the compiler's own.
func (a *Admitted) guarded(h *Hook, e *Entry) {
	if e.text == nil || e.text.forged == 0 {
		return
	}
	slot := e.Value.Head().ContributionID
	if s, ok := e.Value.(*phases.PromptSection); ok {
		slot = s.SectionID
	}
	a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
		Code: phases.CodeHeadingEscaped, Severity: phases.SeverityWarning, Plugin: h.Plugin, Subscription: h.Subscription, Slot: slot, Visibility: h.Visibility,
		Message: fmt.Sprintf("%s: %d headings read like sections of the compiler's own; they were taken away or escaped", slot, e.text.forged),
	})
}

// pass takes over what the plugin has to say about its contribution. Whose it
// is cannot be forged.
func (a *Admitted) pass(h *Hook, remarks []phases.Diagnostic) {
	for _, d := range remarks {
		d = d.Remark(h.Visibility)
		d.Plugin, d.Subscription = h.Plugin, h.Subscription
		a.Diagnostics = append(a.Diagnostics, d)
	}
}

// LeftOut returns the manifest's row for a refused contribution of h.
func (d Drop) LeftOut(h *Hook) phases.LeftOut {
	id := d.ContributionID
	if d.Kind == phases.KindPromptSection && d.Slot != "" {
		id = d.Slot
	}
	return phases.LeftOut{ID: id, Owner: h.Plugin, Reason: string(d.Cause), Chars: d.Chars}
}

// charsOf is the length of the text that a contribution would have put before
// the model, as it was sent.
func charsOf(c phases.Contribution) int {
	switch c := c.(type) {
	case *phases.PromptSection:
		return text.Chars(c.Content)
	case *phases.PromptContext:
		return text.Chars(c.Content)
	case *phases.Reminder:
		return text.Chars(c.Text)
	}
	return 0
}
