// Package gemini translates a request to the generateContent API of Google's
// Gemini models, in the types of google.golang.org/genai.
//
// Start at [Build]: its contents and config go to the SDK's
// Models.GenerateContent, and [Usage] and [Reply] take what comes back.
//
// Gemini caches prefixes by itself, and has explicit caches: [NewCache] returns what goes into one (the tools and the
// stable part), and [Options] name one in a request. A request with such a cache may not have a system instruction,
// so the dynamic part then begins the user's first message, where it has less weight.
//
// It sends nothing. The host may change the config before sending it.
//
// Stability: experimental until 1.0.
package gemini

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// Options are what the plan leaves to the host.
type Options struct {
	// Cache is an explicit cache to use; the zero value is none.
	Cache Handle
}

// Handle names an explicit cache.
type Handle struct {
	// Name is the provider's, such as "cachedContents/…".
	Name string
	// Key is what [NewCache] returned. A cache with another key than the request's is not used.
	Key string
}

// Built is a request that can be sent.
type Built struct {
	providers.Translation

	Model    string
	Contents []*genai.Content
	Config   *genai.GenerateContentConfig
}

func rules() providers.Rules { return providers.Rules{Provider: compiler.Gemini} }

// Build translates a request. Errors are those of [providers.Lay].
func Build(r providers.Request, o Options) (Built, error) {
	known, err := r.Known(compiler.Gemini)
	if err != nil {
		return Built{}, err
	}
	l, err := providers.Lay(r, rules())
	if err != nil {
		return Built{}, fmt.Errorf("gemini: %w", err)
	}
	b := builder{Layout: l}
	config := &genai.GenerateContentConfig{MaxOutputTokens: int32(min(max(r.MaxTokens, 0), 1<<31-1))}
	cached := o.Cache.Name != "" && o.Cache.Key == b.cacheKey(r)
	var lead []*genai.Part
	switch {
	case cached:
		config.CachedContent = o.Cache.Name
		lead = parts(append([]string{l.DynamicText}, l.SystemMessages...))
		l.Move(r, phases.PlacementSystem, providers.PlaceFirstMessage)
		l.Move(r, phases.PlacementSystemMessage, providers.PlaceFirstMessage)
	default:
		l.Move(r, phases.PlacementSystemMessage, string(phases.PlacementSystem))
		config.SystemInstruction = content("", parts(append([]string{l.SystemText()}, l.SystemMessages...)))
		config.Tools = b.tools()
	}
	if o.Cache.Name != "" && !cached {
		l.Warnf(providers.CodeCacheStale, "the cache %s does not match this model, stable part and tools", o.Cache.Name)
	}
	contents := b.contents(lead)
	b.sign(contents)
	l.CheckMinimum(r, known, false)
	return Built{Model: r.Model, Contents: contents, Config: config, Translation: l.Translation}, nil
}

// NewCache returns what goes into an explicit cache for requests like this one, for the
// SDK's Caches.Create, and the cache's key. A ttl of 0 is the provider's default.
func NewCache(r providers.Request, ttl time.Duration) (key string, config *genai.CreateCachedContentConfig, err error) {
	l, err := providers.Lay(r, rules())
	if err != nil {
		return "", nil, fmt.Errorf("gemini: %w", err)
	}
	b := builder{Layout: l}
	key = b.cacheKey(r)
	return key, &genai.CreateCachedContentConfig{
		TTL: ttl, DisplayName: key,
		SystemInstruction: content("", parts([]string{r.Prompt.StableText})),
		Tools:             b.tools(),
	}, nil
}

type builder struct{ *providers.Layout }

func (b builder) cacheKey(r providers.Request) string {
	h := sha256.New()                                                     // the provider sends what is cached under the key, whatever the request has
	write := func(s string) { _, _ = fmt.Fprintf(h, "%d:%s", len(s), s) } // a hash never fails
	write(r.Model)
	write(r.Prompt.StableText)
	for i := range b.Tools {
		write(b.Tools[i].Text)
	}
	return digest.PrefixSHA256 + hex.EncodeToString(h.Sum(nil))
}

func (b builder) tools() []*genai.Tool {
	if len(b.Tools) == 0 {
		return nil
	}
	out := &genai.Tool{}
	for i := range b.Tools {
		t := &b.Tools[i]
		out.FunctionDeclarations = append(out.FunctionDeclarations, &genai.FunctionDeclaration{
			Name: t.Name, Description: t.Description, ParametersJsonSchema: t.Schema,
		})
	}
	return []*genai.Tool{out}
}

// contents returns the conversation; lead begins the user's first message.
func (b builder) contents(lead []*genai.Part) []*genai.Content {
	var out []*genai.Content
	if len(lead) > 0 && (len(b.Messages) == 0 || b.Messages[0].Assistant) {
		out = append(out, content(genai.RoleUser, lead))
		lead = nil
	}
	for _, m := range b.Messages {
		c := &genai.Content{Role: genai.RoleUser, Parts: lead}
		lead = nil
		if m.Assistant {
			c.Role = genai.RoleModel
		}
		for _, p := range m.Parts {
			c.Parts = append(c.Parts, b.parts(p)...)
		}
		if len(c.Parts) > 0 {
			out = append(out, c)
		}
	}
	return b.withTail(out)
}

func (b builder) withTail(contents []*genai.Content) []*genai.Content {
	tail := parts([]string{b.Tail})
	if n := len(contents); n > 0 && len(tail) > 0 && contents[n-1].Role == genai.RoleUser {
		contents[n-1].Parts = append(contents[n-1].Parts, tail...)
		return contents
	}
	if last := content(genai.RoleUser, tail); last != nil {
		contents = append(contents, last)
	}
	return contents
}

func (b builder) parts(p providers.Part) []*genai.Part {
	var native genai.Content
	plain := b.For(compiler.Gemini, p, func(data json.RawMessage) error { return json.Unmarshal(data, &native) })
	out := native.Parts
	for _, p := range plain {
		switch {
		case p.Call != nil:
			out = append(out, &genai.Part{FunctionCall: &genai.FunctionCall{
				ID: p.Call.ID, Name: b.Names.Wire(p.Call.Tool), Args: object(b.Arguments(p.Call)),
			}})
		case p.Result != nil:
			out = append(out, &genai.Part{FunctionResponse: b.response(p.Result)})
		case p.Media != nil:
			out = append(out, media(p.Media))
		default:
			out = append(out, &genai.Part{Text: p.Text})
		}
	}
	return out
}

func media(m *history.Media) *genai.Part {
	if len(m.Data) > 0 {
		return genai.NewPartFromBytes(m.Data, m.Type)
	}
	return genai.NewPartFromURI(m.URI, m.Type)
}

// noSignature is what the API documents for calls that it has no signature of: those of another provider's model, or
// of a history that did not keep it.
const noSignature = "skip_thought_signature_validator"

// sign gives the first call of each step a signature if it has none, as models from Gemini 3 on want it. They check
// the current turn only; all are signed so that the bytes of a turn stay the same when the next one begins.
func (b builder) sign(contents []*genai.Content) {
	if !b.Has(providers.RuleSignature) {
		return
	}
	foreign := 0
	for _, c := range contents {
		i := slices.IndexFunc(c.Parts, func(p *genai.Part) bool { return p.FunctionCall != nil })
		if c.Role == genai.RoleModel && i >= 0 && len(c.Parts[i].ThoughtSignature) == 0 {
			c.Parts[i].ThoughtSignature = []byte(noSignature)
			foreign++
		}
	}
	if foreign > 0 {
		b.Warnf(providers.CodeSignature, "%d steps have no signature of the model's: it does not check them, and may answer worse", foreign)
	}
}

// object decodes an object without changing numbers.
func object(raw json.RawMessage) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	out := map[string]any{}
	if err := dec.Decode(&out); err != nil {
		return map[string]any{} // layouts hold objects only
	}
	return out
}

func (b builder) response(r *history.Result) *genai.FunctionResponse {
	member := "output"
	if r.IsError {
		member = "error"
	}
	return &genai.FunctionResponse{ID: r.CallID, Name: b.Names.Wire(r.Tool), Response: map[string]any{member: r.Text}}
}

func parts(texts []string) []*genai.Part {
	var out []*genai.Part
	for _, text := range texts {
		if text != "" {
			out = append(out, &genai.Part{Text: text})
		}
	}
	return out
}

func content(role string, parts []*genai.Part) *genai.Content {
	if len(parts) == 0 {
		return nil
	}
	return &genai.Content{Role: role, Parts: parts}
}

// Usage returns what the provider reported. Thinking counts as output. Gemini does not
// report what it wrote to its cache.
func Usage(u *genai.GenerateContentResponseUsageMetadata) phases.Usage {
	if u == nil {
		return phases.Usage{}
	}
	return phases.Usage{
		InputTokens:     int(u.PromptTokenCount) + int(u.ToolUsePromptTokenCount),
		OutputTokens:    int(u.CandidatesTokenCount) + int(u.ThoughtsTokenCount),
		CacheReadTokens: int(u.CachedContentTokenCount),
	}
}

// Reply makes an entry of a response's first candidate: its text, its calls under the names of the tools and, if it
// has anything else (signatures of thoughts, which must be sent back), the whole as the entry's native form. newID
// makes ids of calls that Gemini omitted. A call of an unknown tool keeps its name. A response without a candidate,
// because it was blocked, is an error.
func Reply(r *genai.GenerateContentResponse, names providers.Names, newID func() string) (history.Entry, error) {
	if len(r.Candidates) == 0 || r.Candidates[0].Content == nil {
		return history.Entry{}, errors.New("gemini: the response has no content")
	}
	e := history.Entry{Role: history.RoleAssistant}
	whole := genai.Content{Role: genai.RoleModel}
	var text strings.Builder
	more := false
	for _, given := range r.Candidates[0].Content.Parts {
		p := *given
		more = more || len(p.ThoughtSignature) > 0
		switch {
		case p.FunctionCall != nil:
			call, err := callOf(&p, names, newID)
			if err != nil {
				return history.Entry{}, err
			}
			e.Calls = append(e.Calls, call)
		case p.Text != "" && !p.Thought:
			text.WriteString(p.Text)
		default:
			more = more || !p.Thought
		}
		whole.Parts = append(whole.Parts, &p)
	}
	e.Text = text.String()
	if !more {
		return e, nil
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return history.Entry{}, err
	}
	e.Native = &history.Native{Provider: compiler.Gemini, Data: data}
	return e, nil
}

// callOf returns the call of a part, and completes the part's id.
func callOf(p *genai.Part, names providers.Names, newID func() string) (history.Call, error) {
	f := *p.FunctionCall
	if f.ID == "" {
		f.ID = newID()
	}
	p.FunctionCall = &f
	if f.Args == nil {
		f.Args = map[string]any{}
	}
	arguments, err := json.Marshal(f.Args)
	if err != nil {
		return history.Call{}, err
	}
	return names.Call(f.ID, f.Name, arguments), nil
}
