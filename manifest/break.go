package manifest

import (
	"cmp"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Cause says why a provider's cache could not serve what it held of the previous prompt. These lose everything: provider
// and model (the prompt was for another one), tools and host_tools ([Break] says which definition changed, and how), and
// expired (the prompt is older than what the provider keeps).
//
// Of a section: section_text (its text), section_order (it stands elsewhere), section_inserted (it was not there),
// section_removed (it is no longer there), section_moved (its stability or placement moved it over a boundary). Of what
// is around them: key (the plan's fingerprint key is another, no text need be), breakpoint (none where the previous prompt
// had one, or none at all there), epoch (a compaction, clear or reload replaced the conversation), history_edited
// (earlier messages are not what they were), history_cut (they were left out or summarized).
//
// The causes plugin_version, configuration, build and profile go with another one, or are all that changed where usage
// shows a loss; unknown is a loss that nothing in the records explains: the provider dropped what it held.
type Cause string

// The causes.
const (
	causeProvider Cause = "provider"
	causeModel    Cause = "model"
	causeTools    Cause = "tools"
	causeHost     Cause = "host_tools"
	causeExpired  Cause = "expired"
	causeText     Cause = "section_text"
	causeOrder    Cause = "section_order"
	causeInserted Cause = "section_inserted"
	causeRemoved  Cause = "section_removed"
	causeMoved    Cause = "section_moved"
	causeKey      Cause = "key"
	causePoint    Cause = "breakpoint"
	CauseEpoch    Cause = "epoch"
	causeEdited   Cause = "history_edited"
	causeCut      Cause = "history_cut"
	causeVersion  Cause = "plugin_version"
	causeConfig   Cause = "configuration"
	causeBuild    Cause = "build"
	causeProfile  Cause = "profile"
	causeUnknown  Cause = "unknown"
)

// causes are all of them.
func causes() []Cause {
	return []Cause{
		causeProvider, causeModel, causeTools, causeHost, causeExpired, causeText, causeOrder, causeInserted, causeRemoved, causeMoved, causeKey,
		causePoint, CauseEpoch, causeEdited, causeCut, causeVersion, causeConfig, causeBuild, causeProfile, causeUnknown,
	}
}

// Break says where a prompt stops being the previous one for the provider's cache. The zero value is no break.
type Break struct {
	// Cause is the first change in the order of the request; absent if there is none.
	Cause Cause `json:"cause,omitempty"`
	// BrokeAt is the section that changed; empty where it was something else.
	BrokeAt string `json:"broke_at"`
	// Tool is the tool that changed; absent where it was something else.
	Tool string `json:"tool,omitempty"`
	// Field says what of the section or tool changed: text, order, added or removed contributions; stability or
	// placement; definition, added, removed, hidden_domain or owner. Absent where the cause says it.
	Field string `json:"field,omitempty"`
	// Owner is who made the change: a plugin, "builtin" or "host".
	Owner string `json:"owner"`
	// Because is what changed at the same time and explains it: plugin_version, configuration, build or profile.
	Because Cause `json:"because,omitempty"`
	// TokensLost is what the provider held of the previous prompt and had to read again: as both usages say, else
	// an estimate from the sections; 0 without a tokenizer.
	TokensLost int `json:"tokens_lost"`
}

// usualLifetime is how long a provider keeps a prompt if nobody says otherwise.
const usualLifetime = 5 * time.Minute

// Compare says what of an earlier prompt the provider's cache could not serve for a later one of the same thread, and
// why. Both must have been sent. The usages may be nil; those of several rounds say nothing about one prompt.
func Compare(before, after *Outline, was, is *Usage) Break {
	c := newComparison(before, after, was, is)
	b := c.find()
	if b.Cause != "" {
		b.TokensLost = c.lost(&b)
	}
	return b
}

type comparison struct {
	before, after *Outline
	was, is       *Usage
	// rules are those of the later prompt's model, and had those of the earlier one's; where one is unknown, the other's.
	rules, had CacheRules
	// sameKey says that hashes can be compared.
	sameKey bool
	// same is how many sections both begin with.
	same int
}

func newComparison(before, after *Outline, was, is *Usage) *comparison {
	c := &comparison{before: before, after: after, was: single(was), is: single(is)}
	if r := cmp.Or(after.Rules, before.Rules); r != nil {
		c.rules, c.had = *r, *cmp.Or(before.Rules, r)
	}
	c.sameKey = before.Key == after.Key
	for c.same < min(len(before.Sections), len(after.Sections)) && c.equal(&before.Sections[c.same], &after.Sections[c.same]) {
		c.same++
	}
	return c
}

func single(u *Usage) *Usage {
	if u == nil || u.Rounds > 1 || u.InputTokens == 0 {
		return nil
	}
	return u
}

func (c *comparison) equal(a, b *OutlineSection) bool {
	return a.SectionID == b.SectionID && a.Stability == b.Stability && a.Placement == b.Placement && c.sameText(a, b)
}

func (c *comparison) sameText(a, b *OutlineSection) bool {
	return a.Chars == b.Chars && (a.Hash == b.Hash || !c.sameKey)
}

// find looks for the first change in the order of a request. What is only estimated gives way to what usage shows.
func (c *comparison) find() Break {
	b, a := c.before, c.after
	differ := func(x, y string) bool { return x != "" && y != "" && x != y }
	served := c.is != nil && c.is.CacheReadTokens > 0
	switch {
	case b.OfAgent || a.OfAgent || !served && c.tooShort():
		return Break{}
	case differ(b.Provider, a.Provider):
		return Break{Cause: causeProvider, Owner: phases.OwnerHost}
	case differ(b.Model, a.Model):
		return Break{Cause: causeModel, Owner: phases.OwnerHost}
	}
	if tool := c.tools(causeTools, b.Tools, a.Tools); tool.Cause != "" && tool.Field != "owner" {
		return tool
	}
	if tool := c.tools(causeHost, b.HostTools, a.HostTools); tool.Cause != "" {
		return tool
	}
	if tool := c.toolOrder(); tool.Cause != "" {
		return tool
	}
	switch {
	case c.rules.LifetimeS > 0 && c.age() > time.Duration(c.rules.LifetimeS)*time.Second && !served:
		return Break{Cause: causeExpired}
	case c.same < max(len(b.Sections), len(a.Sections)):
		return c.section()
	case !c.sameKey:
		return Break{Cause: causeKey, Owner: phases.OwnerHost}
	}
	return c.behind(served)
}

// toolOrder names the first tool of an observed request that stands elsewhere; the tools are the same. Those of other hosts are sorted.
func (c *comparison) toolOrder() Break {
	for i := range min(len(c.before.HostTools), len(c.after.HostTools)) {
		if t := &c.after.HostTools[i]; c.after.Observed && t.Name != c.before.HostTools[i].Name {
			return Break{Cause: causeHost, Tool: t.Name, Field: "order", Owner: t.Owner}
		}
	}
	return Break{}
}

// tooShort reports whether the provider cannot have kept the earlier prompt: as it reported, else by the estimate, which
// knows nothing of a conversation that may be cached too.
func (c *comparison) tooShort() bool {
	if c.was != nil {
		return c.had.whole(c.was.InputTokens) == 0
	}
	n, h := c.before.tokens(len(c.before.Sections)), c.before.History
	return n > 0 && c.had.whole(n) == 0 && (c.had.Explicit || h == nil || h.Entries <= 1)
}

// behind looks for what can break the cache although tools and sections are the same.
func (c *comparison) behind(served bool) Break {
	b, a := c.before, c.after
	host := func(cause Cause) Break { return Break{Cause: cause, Owner: phases.OwnerHost} }
	whole := a.tokens(len(a.Sections))
	unused := func(u *Usage) bool { return u != nil && u.CacheReadTokens+u.CacheWriteTokens == 0 }
	switch {
	case c.rules.Explicit && !served && (whole > 0 && c.rules.whole(whole) > 0 && c.kept() == 0 || unused(c.was) || unused(c.is)):
		return host(causePoint)
	case a.afterReset(b):
		return host(CauseEpoch)
	}
	if cause := c.history(); cause != "" && a.Observed {
		return Break{Cause: cause, BrokeAt: a.History.Part, Owner: a.History.Owner}
	} else if cause != "" {
		return host(cause)
	}
	if tool := c.tools(causeTools, b.Tools, a.Tools); tool.Cause != "" {
		return tool
	}
	if c.was == nil || c.is == nil || 10*(c.held()-c.is.CacheReadTokens) <= c.held() {
		return Break{}
	}
	return c.unexplained()
}

// history says what became of the conversation; empty if it may only have grown.
func (c *comparison) history() Cause {
	b, a := c.before.History, c.after.History
	switch {
	case b == nil || a == nil:
	case c.after.Observed && (a.Previous != c.before.ManifestID || a.Same >= min(b.Cached, b.Entries)): // what changed behind that was not kept
	case c.after.Observed && a.Entries >= b.Entries:
		return causeEdited
	case a.Cut > b.Cut || a.Summarized > b.Summarized || a.Entries < b.Entries:
		return causeCut
	case a.Entries == b.Entries && a.Hash != b.Hash && c.sameKey || a.Repaired > b.Repaired:
		return causeEdited
	}
	return ""
}

// unexplained names what else is not as it was, for a loss that only usage shows.
func (c *comparison) unexplained() Break {
	b, a := c.before, c.after
	switch {
	case c.rules.LifetimeS == 0 && c.age() > usualLifetime:
		return Break{Cause: causeExpired}
	case b.History != nil && a.History != nil && !a.Observed && c.is.CacheReadTokens > 0:
		return Break{Cause: causeEdited, Owner: phases.OwnerHost}
	}
	for i := range a.Plugins {
		if c.updated(a.Plugins[i].Name) {
			return Break{Cause: causeVersion, Owner: a.Plugins[i].Name}
		}
	}
	switch {
	case b.Config != a.Config:
		return Break{Cause: causeConfig, Owner: phases.OwnerHost}
	case b.Build != a.Build || b.CompilerVersion != a.CompilerVersion:
		return Break{Cause: causeBuild, Owner: phases.OwnerBuiltin}
	}
	return Break{Cause: causeUnknown}
}

// afterReset reports whether the conversation was replaced since an earlier prompt.
func (o *Outline) afterReset(before *Outline) bool {
	return before.SessionID == o.SessionID && o.Epoch > before.Epoch
}

// age is how long the provider has not been asked for the prefix.
func (c *comparison) age() time.Duration {
	used := c.before.CreatedAt
	if c.was != nil && c.was.ReportedAt.After(used) && c.was.ReportedAt.Before(c.after.CreatedAt) {
		used = c.was.ReportedAt
	}
	return c.after.CreatedAt.Sub(used)
}

// tokens are those of the tools and the first sections; 0 without a tokenizer.
func (o *Outline) tokens(sections int) int {
	n := o.ToolTokens
	for i := range o.Sections[:sections] {
		n += max(0, o.Sections[i].Tokens)
	}
	return n
}

// read is [Outline.tokens] with a separator behind each section, as a provider reads it that goes by no breakpoints.
func (o *Outline) read(sections int) int {
	n := o.tokens(sections)
	if n == 0 {
		return 0
	}
	return n + sections
}

// held is how many tokens of the previous prompt the provider had kept.
func (c *comparison) held() int {
	if c.was != nil {
		if c.had.Explicit {
			return c.was.CacheReadTokens + c.was.CacheWriteTokens
		}
		return c.had.whole(c.was.InputTokens)
	}
	o := c.before
	if !c.had.Explicit {
		return c.had.whole(o.read(len(o.Sections)))
	}
	most := 0
	for _, p := range o.Breakpoints {
		most = max(most, o.tokens(o.end(p)))
	}
	return c.had.whole(most)
}

// whole is as much of a prefix as a cache keeps.
func (r *CacheRules) whole(tokens int) int {
	if !r.Explicit {
		tokens -= tokens % max(1, r.Step)
	}
	if tokens < r.MinimumTokens {
		return 0
	}
	return tokens
}

// end is how many sections a breakpoint has in front of it.
func (o *Outline) end(p Breakpoint) int {
	return 1 + slices.IndexFunc(o.Sections, func(s OutlineSection) bool { return p.SectionID != "" && s.SectionID == p.SectionID })
}

// kept is the longest common prefix that the provider was asked to keep, and is asked for again.
func (c *comparison) kept() int {
	reach := 0
	for _, p := range c.after.Breakpoints {
		reach = max(reach, c.after.tokens(c.after.end(p)))
	}
	most := 0
	for _, p := range c.before.Breakpoints {
		if n := c.before.end(p); n <= c.same && (n > 0 || p.After == AfterTools) {
			most = max(most, c.after.tokens(n))
		}
	}
	return min(most, reach)
}

// predicted is how many tokens of tools and sections the provider should serve.
func (c *comparison) predicted(b *Break) int {
	switch b.Cause { //nolint:exhaustive // others leave a prefix
	case causeProvider, causeModel, causeHost, causeExpired:
		return 0
	case causeTools:
		if b.Field != "owner" {
			return 0
		}
	}
	if c.rules.Explicit {
		return c.rules.whole(c.kept())
	}
	return c.rules.whole(c.after.read(c.same) + c.inside())
}

// inside is about how many tokens the next section begins with as before, by those who wrote it.
func (c *comparison) inside() int {
	if c.same >= len(c.before.Sections) || c.same >= len(c.after.Sections) {
		return 0
	}
	b, a := &c.before.Sections[c.same], &c.after.Sections[c.same]
	if b.SectionID != a.SectionID || c.crossed(b, a) || a.Tokens <= 0 {
		return 0
	}
	chars := 0
	for i := range min(len(b.Spans), len(a.Spans)) {
		if b.Spans[i] != a.Spans[i] || a.Spans[i].Hash == 0 || !c.sameKey {
			break
		}
		chars += a.Spans[i].Chars
	}
	return a.Tokens * min(chars, a.Chars) / max(a.Chars, 1)
}

func (c *comparison) lost(b *Break) int {
	served := c.predicted(b)
	switch {
	case c.is != nil:
		served = c.is.CacheReadTokens
	case b.Cause == causeKey || b.Field == "owner":
		return 0
	case c.was == nil && (b.Cause == causeEdited || b.Cause == causeCut || b.Cause == CauseEpoch):
		return 0 // the conversation is not in the record
	}
	return max(0, c.held()-served)
}

// Judge sets what the record says about the previous prompt of the thread: the break, and with rules and tokens how
// much the provider should serve. Nil is none, as is one that was not sent. It returns the record's outline.
func (m *Manifest) Judge(previous *Outline) *Outline {
	m.Cache.Break, m.Cache.Predicted = Break{}, nil
	o := m.Outline()
	if previous == nil || !previous.Sent || len(previous.Sections) == 0 || len(o.Sections) == 0 {
		return &o
	}
	c := newComparison(previous, &o, nil, nil)
	b := c.find()
	if b.Cause != "" {
		b.TokensLost = c.lost(&b)
	}
	m.Cache.Break = b
	if o.Rules != nil && o.Sections[0].Tokens >= 0 {
		m.Cache.Predicted = new(c.predicted(&b))
	}
	return &o
}
