package compiler

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Request is a request that an agent compiled and sent by itself, in parts.
type Request struct {
	// Agent is its name.
	Agent string
	// System is the system prompt: the texts of its parts, one behind the other, with nothing between them. Parts behind the
	// first dynamic one are dynamic.
	System []RequestPart
	// Tools are definitions, as JSON. Messages are the parts of messages behind the first History.Same ones.
	Tools, Messages []RequestPart
	// History is how many messages there are; Added is ignored.
	History manifest.History
	// Cached are the indexes of parts of System at whose ends the provider is asked to cache.
	Cached []int
}

// RequestPart is a text in a request, and whose it is. What it is not, such as the Role of a tool, is empty.
type RequestPart struct {
	ID, Title, Owner string
	// Stability is that of a part of the system prompt.
	Stability phases.Stability
	// Kind, Role and Message are those of a [manifest.MessagePart].
	Kind, Role string
	Message    int
	Text       string
}

// Observe returns the record of a request. Of the input it takes the provider and model, the rules of the cache, the
// tokenizer, the key, KeepTexts and Previous, whose counts of tokens it uses again.
func Observe(r *Request, in *Input) Output {
	o := observation{in: in, hasher: digest.NewHasher(in.FingerprintKey), seen: map[string]bool{}, ids: map[string]int{}}
	o.out.Profile = phases.ProfileFull
	o.out.Cache = manifest.Cache{Provider: valid(in.Provider), Model: valid(in.Model)}
	if rules := in.CacheRules; rules != nil {
		o.out.Cache.Rules = recordedRules(rules)
	}
	for i := range r.System {
		o.section(&r.System[i])
	}
	for _, i := range r.Cached {
		after := manifest.AfterStable
		if r.System[i].Stability == dynamic {
			after = manifest.AfterDynamic
		}
		o.out.Cache.Plan.Breakpoints = append(o.out.Cache.Plan.Breakpoints, manifest.Breakpoint{After: after, SectionID: o.out.Sections[i].SectionID})
	}
	o.fingerprints(r.System)
	for i := range r.Tools {
		t := &r.Tools[i]
		_, sum := o.text(t.Text)
		o.out.HostTools = append(o.out.HostTools, manifest.HostTool{Name: valid(t.ID), Hash: sum, Owner: valid(t.Owner), Chars: utf8.RuneCountInString(t.Text)})
	}
	o.toolTokens(r.Tools)
	history := r.History
	history.Added = nil
	for i := range r.Messages {
		p := &r.Messages[i]
		_, sum := o.text(p.Text)
		history.Added = append(history.Added, manifest.MessagePart{
			Message: p.Message, Role: valid(p.Role), Kind: valid(p.Kind), ID: valid(p.ID), Owner: valid(p.Owner), Chars: utf8.RuneCountInString(p.Text), Hash: sum,
		})
	}
	o.out.History = &history
	return o.out
}

type observation struct {
	in     *Input
	out    Output
	hasher *digest.Hasher
	seen   map[string]bool // hashes of the texts to keep
	ids    map[string]int
}

// text returns the fingerprint and the hash of a text, which is kept.
func (o *observation) text(text string) (fingerprint, sum string) {
	text = valid(text)
	fingerprint, sum = o.sums(text)
	if o.in.KeepTexts && !o.seen[sum] {
		o.seen[sum] = true
		o.out.Texts = append(o.out.Texts, manifest.Text{Hash: sum, Text: text})
	}
	return fingerprint, sum
}

func (o *observation) sums(text string) (fingerprint, sum string) {
	o.hasher.Reset()
	o.hasher.WriteString(text)
	return o.hasher.Sums()
}

// section adds a row. An id that is there already gets a number.
func (o *observation) section(p *RequestPart) {
	id := p.ID
	for taken := o.ids[id] > 0; taken; taken = o.ids[id] > 0 {
		o.ids[p.ID]++
		id = p.ID + "-" + strconv.Itoa(o.ids[p.ID])
	}
	o.ids[id] = 1
	n := utf8.RuneCountInString(p.Text)
	s := manifest.Section{
		SectionID: id, Title: valid(p.Title), Stability: p.Stability, Placement: phases.PlacementSystem, Owner: valid(p.Owner), Position: len(o.out.Sections), Chars: n, OriginalChars: n,
		ContentMap: []manifest.Span{{Length: n, Owner: valid(p.Owner)}},
	}
	s.Fingerprint, s.Hash = o.text(p.Text)
	if o.in.CountTokens != nil {
		s.Tokens, s.Tokenizer = new(o.tokens(&s, p.Text)), cmp.Or(o.in.Tokenizer, unnamed)
	}
	o.out.Sections = append(o.out.Sections, s)
}

// tokens counts those of a section, unless the previous request had it.
func (o *observation) tokens(s *manifest.Section, text string) int {
	if before := o.in.Previous; before != nil && s.Position < len(before.Sections) {
		if b := &before.Sections[s.Position]; b.Tokens >= 0 && b.Hash == manifest.MarkOf(s.Hash) {
			return b.Tokens
		}
	}
	return o.in.CountTokens(text)
}

// toolTokens is tokens for all definitions together.
func (o *observation) toolTokens(tools []RequestPart) {
	if o.in.CountTokens == nil {
		return
	}
	if before := o.in.Previous; before != nil && len(before.HostTools) == len(tools) {
		same := true
		for i := range tools {
			same = same && before.HostTools[i].Hash == manifest.MarkOf(o.out.HostTools[i].Hash)
		}
		if same {
			o.out.Cache.ToolTokens = before.ToolTokens
			return
		}
	}
	for i := range tools {
		o.out.Cache.ToolTokens += o.in.CountTokens(tools[i].Text)
	}
}

func (o *observation) fingerprints(system []RequestPart) {
	f := &o.out.Fingerprints
	*f = manifest.EmptyFingerprints(o.in.FingerprintKey)
	at := 0
	for at < len(system) && system[at].Stability == stable {
		at++
	}
	f.FingerprintStable, f.HashStable = o.sums(together(system[:at]))
	f.FingerprintDynamic, f.HashDynamic = o.sums(together(system[at:]))
	f.FingerprintDynamicWithoutExtraSystem, f.HashDynamicWithoutExtraSystem = f.FingerprintDynamic, f.HashDynamic
	f.FingerprintFull, f.HashFull = o.sums(together(system))
	f.FingerprintTools, f.HashTools = toolSums(o.in.FingerprintKey, []manifest.Tool{})
}

func together(parts []RequestPart) string {
	var b strings.Builder
	for i := range parts {
		b.WriteString(valid(parts[i].Text))
	}
	return b.String()
}
