package manifest

// Cache is what is known about the provider's prompt cache for this prompt.
type Cache struct {
	// Plan is what the adapters are asked to do.
	Plan CachePlan `json:"plan"`
	// OfAgent says that an agent behind hooks compiles the request, of which this prompt is a part. What the provider holds
	// of it is not known here: there is no plan, no prediction and no break.
	OfAgent bool `json:"of_agent,omitempty"`
	// Provider is the provider that the prompt was compiled for; empty where that is not known.
	Provider string `json:"provider,omitempty"`
	// Model is the model that the prompt was compiled for; empty where that is not known.
	Model string `json:"model,omitempty"`
	// Rules are what was known of the model's cache; absent where nothing was.
	Rules *CacheRules `json:"rules,omitempty"`
	// ToolTokens is about how many tokens the definitions of the offered tools have; absent without a tokenizer.
	ToolTokens int `json:"tool_tokens,omitempty"`
	// Predicted is how many tokens of tools and sections the provider should serve from its cache: an estimate that
	// takes no account of the conversation behind them. Null without a previous manifest, a tokenizer, or known rules
	// of the model.
	Predicted *int `json:"predicted"`
	// Actual is how many input tokens did come from the cache, as the provider reported; null until it has. It is
	// filled in where a record is shown and is null in what is stored and hashed.
	Actual *int `json:"actual"`
	// Break is how the prompt differs from the previous one, as far as it was known when it was compiled.
	Break
}

// GenAIProvider is the provider as OpenTelemetry's conventions name it in gen_ai.provider.name: one of their words where
// they have one.
func (c *Cache) GenAIProvider() string {
	if c.Provider == "gemini" {
		return "gcp.gemini"
	}
	return c.Provider
}

// CacheRules are the rules of one model's cache that a prediction rests on.
type CacheRules struct {
	// MinimumTokens is the shortest prefix that is cached.
	MinimumTokens int `json:"minimum_tokens"`
	// LifetimeS is how long an unused prefix is kept, in seconds; 0 if unknown.
	LifetimeS int `json:"lifetime_s,omitempty"`
	// Step is by how many tokens a prefix grows that was found without breakpoints; 0 is any number.
	Step int `json:"step,omitempty"`
	// Explicit says that prefixes end at breakpoints only.
	Explicit bool `json:"explicit,omitempty"`
}

// CachePlan is where a provider should be asked to cache. It names places of
// the prompt; adapters translate it to what their provider takes.
type CachePlan struct {
	// Key groups requests that share the stable part.
	Key string `json:"key,omitempty"`
	// Breakpoints are the ends of prefixes worth keeping, first to last.
	Breakpoints []Breakpoint `json:"breakpoints,omitempty"`
}

// Breakpoint is the end of a prefix.
type Breakpoint struct {
	// After says what the prefix ends with.
	After BreakAfter `json:"after"`
	// SectionID is the last section in the prefix; empty after tools.
	SectionID string `json:"section_id,omitempty"`
}

// BreakAfter is a place where a prefix can end.
type BreakAfter string

// The places.
const (
	AfterTools   BreakAfter = "tools"   // behind the tool definitions, which come first
	AfterStable  BreakAfter = "stable"  // behind the stable part
	AfterDynamic BreakAfter = "dynamic" // behind the dynamic sections that did not change since the previous manifest
)

// Sent reports whether the record's prompt was given to the host to be sent, or an agent has sent it.
func (m *Manifest) Sent() bool {
	return m.Kind == KindPrompt && !m.Blocked && (len(m.Sections) > 0 || m.Observed != "")
}
