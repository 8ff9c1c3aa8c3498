package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/toolschema"
	"github.com/grapnelhq/grapnel/phases"
)

// codeHeadingEscaped: a plugin's text held a heading that reads like a reserved section.
const codeHeadingEscaped = "heading_escaped"

// codeSchemaReduced: a tool's input schema had parts that providers refuse.
const codeSchemaReduced = "tool_schema_reduced"

// Hook is what merging must know of a subscription. It is made once, read only and safe for concurrent use; it must
// not be copied.
type Hook struct {
	// Subscription is the full id; Hook is the plugin's own name for it.
	Subscription, Hook, Plugin, PluginVersion string
	Priority                                  int
	// Kinds are the declared kinds.
	Kinds []phases.Kind
	// Budget bounds the text that is kept of one dispatch.
	Budget phases.TextBudget
	// Grants are the plugin's. Nil grants nothing.
	Grants *phases.Grants
	// Shadow marks a hook whose contributions are recorded and never applied.
	Shadow     bool
	Visibility phases.Visibility
	// Key is the key of hashes; nil leaves hashes plain.
	Key []byte
	// IDs are the [DefaultIDs] of the subscription, which need not be made again then.
	IDs []string

	scratch sync.Pool // *[]byte that Admit hashes in
}

// Entry is one admitted contribution with an id. Only Admit makes entries.
type Entry struct {
	Value phases.Contribution
	// Hash is the hash of the canonical JSON of the value with its kind, under the hook's key.
	Hash string

	text  *prepared // nil if it has no long text
	bytes int       // of the canonical JSON
}

// Size is about how many bytes of memory the entry holds.
func (e *Entry) Size() int {
	const around = 512 // fixed fields and names
	n := around + e.bytes
	if e.text != nil {
		n += len(e.text.whole)
	}
	return n
}

// AppendClones appends copies of entries to dst; their values share no mutable memory with them.
func AppendClones(dst, entries []Entry) []Entry {
	from := len(dst)
	dst = append(dst, entries...)
	for i := range dst[from:] {
		e := &dst[from+i]
		e.Value = phases.CloneContribution(e.Value)
	}
	return dst
}

// Drop is one contribution that was refused while its siblings stay.
type Drop struct {
	ContributionID string
	// Slot is the section id, policy or tool that was not granted, if any.
	Slot string
	Kind phases.Kind
	// Cause is CauseForbidden or CodeNotAllowed.
	Cause   phases.Cause
	Message string
	// Chars is the length of its text.
	Chars int
}

// Admitted is one hook's reply after the boundary.
type Admitted struct {
	Entries []Entry
	Dropped []Drop
	// Diagnostics has one entry for each dropped contribution, and the plugin's own remarks about the others.
	Diagnostics []phases.Diagnostic
}

// Hashes returns the hashes of the entries; never nil.
func (a Admitted) Hashes() []string {
	out := make([]string, len(a.Entries))
	for i := range a.Entries {
		out[i] = a.Entries[i].Hash
	}
	return out
}

// Admit checks one hook's contributions at the boundary: real, cached and fallback ones.
//
// One that is not well formed, or more than [phases.MaxContributions], makes the whole reply invalid: a *phases.Error
// with CauseInvalidReply. A kind that the phase does not take or the hook did not declare is dropped with
// CodeNotAllowed, what the operator did not grant with CauseForbidden; siblings stay.
//
// Admit does not change cs: a contribution without an id is copied before it gets SUBSCRIPTION#INDEX. Otherwise the
// entries share memory with cs.
func Admit(row phases.Row, h *Hook, cs []phases.Contribution) (Admitted, error) {
	return admit(row, h, cs, nil, phases.CloneContribution)
}

// AdmitOwned is [Admit] for contributions that nobody else has: it changes them instead of copies. It appends the
// entries to dst.
func AdmitOwned(row phases.Row, h *Hook, cs []phases.Contribution, dst []Entry) (Admitted, error) {
	return admit(row, h, cs, dst, func(c phases.Contribution) phases.Contribution { return c })
}

// admit is Admit; own returns a contribution that may be changed.
func admit(row phases.Row, h *Hook, cs []phases.Contribution, dst []Entry, own ownFunc) (Admitted, error) {
	var out Admitted
	if len(cs) > phases.MaxContributions {
		return out, invalid(row, h, fmt.Errorf("%d contributions; at most %d", len(cs), phases.MaxContributions))
	}
	if len(cs) == 0 {
		return out, nil
	}
	out.Entries = slices.Grow(dst, len(cs))
	buf, ok := h.scratch.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer func() {
		if cap(*buf) <= maxScratch {
			h.scratch.Put(buf)
		}
	}()
	for i, c := range cs {
		if c == nil || reflect.ValueOf(c).IsNil() {
			return Admitted{}, invalid(row, h, fmt.Errorf("contribution %d is empty", i))
		}
		if d, refused := checkKind(row, h, c); refused {
			id := c.Head().ContributionID
			known := identified(h, i, c, own)
			out.drop(h, known, d)
			if id != "" && id != known.Head().ContributionID {
				out.Diagnostics[len(out.Diagnostics)-1].Detail = fmt.Sprintf("%s: its id was %.80q", d.Message, id)
			}
			continue
		}
		if err := wellFormed(row, c); err != nil {
			return Admitted{}, invalid(row, h, fmt.Errorf("contribution %d: %w", i, err))
		}
		c = named(h, i, c, own)
		if d, refused := checkGrants(h, c); refused {
			out.drop(h, c, d)
			continue
		}
		if bundle, ok := c.(*phases.ToolBundle); ok && len(bundle.Tools) > 0 {
			if c = own(c); !out.offerable(h, c) {
				continue
			}
		}
		remarks := c.Head().Diagnostics
		c = bare(c, own)
		hash, grown, err := hashOf(*buf, c, h.Key)
		if err != nil {
			err = phases.WithDetail("has no canonical form", err.Error(), err) // its words quote the value
			return Admitted{}, invalid(row, h, fmt.Errorf("contribution %d: %s: %w", i, phases.KindOf(c), err))
		}
		*buf = grown
		entry := Entry{Value: c, Hash: hash, text: prepare(c), bytes: len(grown)}
		out.Entries = append(out.Entries, entry)
		out.guarded(h, &entry)
		out.pass(h, remarks)
	}
	return out, nil
}

const maxScratch = 64 << 10

type ownFunc = func(phases.Contribution) phases.Contribution

func wellFormed(row phases.Row, c phases.Contribution) error {
	if err := phases.ValidateContribution(c, row); err != nil {
		if e, ok := errors.AsType[*phases.Error](err); ok {
			return phases.WithDetail(e.Message, e.Detail, nil) // without the code: the caller adds it
		}
		return err
	}
	if r, ok := c.(*phases.Rewrite); ok {
		if _, err := parsePointer(r.Path); err != nil {
			return phases.WithDetail(string(phases.KindOf(c))+": path is not a JSON pointer", err.Error(), err)
		}
	}
	return nil
}

func invalid(row phases.Row, h *Hook, err error) error {
	return &phases.Error{
		Code: phases.CauseInvalidReply, Phase: row.Phase, Subscription: h.Subscription,
		Message: fmt.Sprintf("hook %s: %v", h.Hook, err), Err: err,
	}
}

// checkKind refuses kinds that the phase does not take or the hook did not declare.
func checkKind(row phases.Row, h *Hook, c phases.Contribution) (Drop, bool) {
	k := phases.KindOf(c)
	switch {
	case !row.Accepts(k):
		return Drop{Cause: phases.CodeNotAllowed, Message: fmt.Sprintf("hook %s: phase %s does not take %s", h.Hook, row.Phase, k)}, true
	case k.NeedsGrant() && !slices.Contains(h.Kinds, k):
		return Drop{Cause: phases.CodeNotAllowed, Message: fmt.Sprintf("hook %s: does not declare %s, which it sent in phase %s", h.Hook, k, row.Phase)}, true
	}
	return Drop{}, false
}

// DefaultIDs are the ids of the first contributions of a subscription that have none of their own.
func DefaultIDs(subscription string) []string {
	const most = 4 // few hooks bring more
	ids := make([]string, most)
	for i := range ids {
		ids[i] = defaultID(subscription, i)
	}
	return ids
}

func defaultID(subscription string, index int) string {
	return subscription + "#" + strconv.Itoa(index)
}

// named returns c with an id, by default SUBSCRIPTION#INDEX.
func named(h *Hook, index int, c phases.Contribution, own ownFunc) phases.Contribution {
	if c.Head().ContributionID != "" {
		return c
	}
	c = own(c)
	if index < len(h.IDs) {
		c.Head().ContributionID = h.IDs[index]
	} else {
		c.Head().ContributionID = defaultID(h.Subscription, index)
	}
	return c
}

func identified(h *Hook, index int, c phases.Contribution, own ownFunc) phases.Contribution {
	if id := c.Head().ContributionID; id != "" && !phases.ValidID(id) {
		c = own(c)
		c.Head().ContributionID = ""
	}
	return named(h, index, c, own)
}

// bare returns c without its diagnostics, which are reported apart from it.
func bare(c phases.Contribution, own ownFunc) phases.Contribution {
	if c.Head().Diagnostics == nil {
		return c
	}
	c = own(c)
	c.Head().Diagnostics = nil
	return c
}

func (a *Admitted) drop(h *Hook, c phases.Contribution, d Drop) {
	d.ContributionID, d.Kind, d.Chars = c.Head().ContributionID, phases.KindOf(c), charsOf(c)
	a.Dropped = append(a.Dropped, d)
	a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
		Code: string(d.Cause), Severity: phases.SeverityWarning, Message: d.Message,
		Plugin: h.Plugin, Subscription: h.Subscription, Slot: d.Slot, Visibility: h.Visibility,
	})
}

// offerable gives the tools of a bundle schemas that providers accept, and drops those that cannot have one; false if no
// tool is left.
func (a *Admitted) offerable(h *Hook, c phases.Contribution) bool {
	b, ok := c.(*phases.ToolBundle)
	if !ok {
		return true
	}
	kept := b.Tools[:0]
	for _, t := range b.Tools {
		schema, removed, err := toolschema.Normal(t.InputSchema)
		if err != nil {
			a.drop(h, b, Drop{Cause: phases.CodeNotAllowed, Slot: t.Name, Message: fmt.Sprintf(
				"plugin %s: tool %q is withheld, since providers refuse its input schema: %v", h.Plugin, t.Name, err)})
			continue
		}
		if len(removed) > 0 {
			a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
				Code: codeSchemaReduced, Severity: phases.SeverityInfo, Plugin: h.Plugin, Subscription: h.Subscription, Slot: t.Name, Visibility: h.Visibility,
				Message: fmt.Sprintf("tool %q: providers refuse parts of its input schema, which were removed: %s", t.Name, strings.Join(removed, ", ")),
			})
		}
		t.InputSchema = schema
		kept = append(kept, t)
	}
	b.Tools = kept
	return len(b.Tools) > 0
}

// guarded reports headings that would have passed for the compiler's own.
func (a *Admitted) guarded(h *Hook, e *Entry) {
	if e.text == nil || e.text.forged == 0 {
		return
	}
	slot := e.Value.Head().ContributionID
	if s, ok := e.Value.(*phases.PromptSection); ok {
		slot = s.SectionID
	}
	a.Diagnostics = append(a.Diagnostics, phases.Diagnostic{
		Code: codeHeadingEscaped, Severity: phases.SeverityWarning, Plugin: h.Plugin, Subscription: h.Subscription, Slot: slot, Visibility: h.Visibility,
		Message: fmt.Sprintf("%s: %d headings read like the compiler's own sections; they were removed or escaped", slot, e.text.forged),
	})
}

// pass adds the plugin's remarks about its contribution under the plugin's own name.
func (a *Admitted) pass(h *Hook, remarks []phases.Diagnostic) {
	for _, d := range remarks {
		d = d.Remark(h.Visibility)
		d.Plugin, d.Subscription = h.Plugin, h.Subscription
		a.Diagnostics = append(a.Diagnostics, d)
	}
}

// Omitted returns the manifest's row for a refused contribution of h.
func (d Drop) Omitted(h *Hook) phases.Omitted {
	id := d.ContributionID
	if d.Slot != "" && (d.Kind == phases.KindPromptSection || d.Cause == phases.CodeNotAllowed) {
		id = d.Slot
	}
	return phases.Omitted{ID: id, Owner: h.Plugin, Reason: string(d.Cause), Chars: d.Chars}
}

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

func checkGrants(h *Hook, c phases.Contribution) (Drop, bool) {
	g := h.Grants
	if g == nil {
		g = &phases.Grants{}
	}
	if k := phases.KindOf(c); k.NeedsGrant() && !phases.Allows(g.Contribute, string(k)) {
		return forbidden(h, "", "may not contribute %s", k)
	}
	if p, ok := c.(*phases.Policy); ok {
		// A policy's grant includes its domain.
		if slot := p.Domain + "/" + p.Key; !phases.Allows(g.Policies, slot) {
			return forbidden(h, slot, "may not set policy %q", slot)
		}
		return Drop{}, false
	}
	if d := c.Head().Domain; d != "" && !phases.Allows(g.Domains, d) {
		return forbidden(h, "", "may not speak for domain %q", d)
	}
	switch c := c.(type) {
	case *phases.PromptSection:
		return checkSection(h, g, c)
	case *phases.ToolBundle:
		for i := range c.Tools {
			if name := c.Tools[i].Name; !phases.Allows(g.Tools, name) {
				return forbidden(h, name, "may not offer tool %q", name)
			}
		}
	}
	return Drop{}, false
}

// checkSection checks the grants for a section id. A stable section needs only the grant for stable ones; the
// compiler's rows for hooks keep their own stability.
func checkSection(h *Hook, g *phases.Grants, c *phases.PromptSection) (Drop, bool) {
	id := c.SectionID
	switch {
	case sections.Reserved(id):
		return forbidden(h, id, "may not contribute section %q: it belongs to builtin", id)
	case c.Stability == phases.StabilityStable && sections.ForHooks(id) == nil:
		if !sections.Granted(g.StableSections, id) {
			return forbidden(h, id, "may not contribute section %q as a stable one", id)
		}
	case !sections.Granted(g.Sections, id) && !sections.Granted(g.Join, id):
		return forbidden(h, id, "may not contribute section %q", id)
	}
	return Drop{}, false
}

func forbidden(h *Hook, slot, format string, args ...any) (Drop, bool) {
	msg := fmt.Sprintf("plugin %s "+format, append([]any{h.Plugin}, args...)...)
	return Drop{Cause: phases.CauseForbidden, Slot: slot, Message: msg}, true
}

func (h *Hook) ownsSection(id string) bool {
	return h.Grants != nil && (sections.Granted(h.Grants.Sections, id) || sections.Granted(h.Grants.StableSections, id))
}

func (h *Hook) joinsSection(id string) bool {
	return h.Grants != nil && sections.Granted(h.Grants.Join, id)
}
