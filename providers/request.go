package providers

import (
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Request is everything that goes into one call of a model. Adapters only read it.
type Request struct {
	// Model is the provider's name for the model.
	Model string
	// MaxTokens bounds the response. 0 is the provider's default, but not for Anthropic.
	MaxTokens int
	// Prompt is the compiled prompt with its cache plan.
	Prompt compiler.Prompt
	// Sections are the prompt's rows of the compiler's output or the manifest. Without
	// them there is no breakpoint inside the dynamic part.
	Sections []manifest.Section
	// Tools are the tools that the model may call, in any order.
	Tools []phases.Tool
	// History is the past, as [history.Select] chose it.
	History history.Window
	// Turn is the current turn so far, the user's message first. All its calls must have been answered.
	Turn []history.Entry
	// AfterConversation are ids of dynamic sections that are sent behind the conversation instead of in the system
	// prompt, in the prompt's order. A section that changes with each turn, such as memory_recall, then does not
	// invalidate the cached history behind it. The model gives it less weight there, beside the user's words (OpenAI:
	// as a system message).
	//
	// It needs Sections. Unknown ids are ignored. The manifest predicts as if everything was in the system prompt.
	AfterConversation []string
	// CountTokens estimates tokens for warnings about cache minimums; nil disables these. [history.Counter] has one.
	CountTokens func(string) int
	// Facts are the facts about models; nil means the compiled-in ones.
	Facts *compiler.CacheFacts
}

// Known returns what is known of the request's model.
func (r Request) Known(provider string) (compiler.ModelCache, error) {
	table := r.Facts
	if table == nil {
		loaded, err := compiler.LoadCacheFacts()
		if err != nil {
			return compiler.ModelCache{}, err
		}
		table = loaded
	}
	found, ok := table.Lookup(provider, r.Model)
	if !ok {
		return compiler.ModelCache{}, fmt.Errorf("model facts: nothing about provider %q", provider)
	}
	return found, nil
}

// The codes of warnings.
const (
	codeBelowMinimum = "below_cache_minimum"
	CodeBreakpoint   = "breakpoint_omitted"
	codeNotBehind    = "section_not_behind"
	codeToolRenamed  = "tool_renamed"
	codeArguments    = "arguments_wrapped"
	codeEntry        = "entry_omitted"
	codeNative       = "native_ignored"
	CodeCacheStale   = "cache_stale"
	codeCacheKey     = "cache_key_hashed"
	codeToolOmitted  = "tool_omitted"
	codeCallID       = "call_id_rewritten"
	codeResultText   = "error_text_added"
	CodeSignature    = "signature_missing"
	codeTokenizer    = "tokenizer_unknown"
	codeMedia        = "media_omitted"
)

// Warning says what a provider's request cannot express. Messages name ids, models and numbers, never texts.
type Warning struct {
	// Code is below_cache_minimum (a prefix is too short to be cached), breakpoint_omitted (one of the plan has no place in
	// the request, or the provider accepts no more), section_not_behind (a section could not be put behind the conversation),
	// arguments_wrapped (those of a past call are not a JSON object), entry_omitted (an entry, a call or a result cannot be
	// sent), native_ignored (an entry's native form could not be read; its text was sent), cache_stale (an explicit cache
	// does not match and was not used), cache_key_hashed (the plan's key is too long), error_text_added (a result that is an
	// error had no text), signature_missing (a placeholder stands for the model's), tokenizer_unknown (counts are estimates),
	// or says what the provider does not accept: tool_renamed (a name), tool_omitted (so many tools), call_id_rewritten (a
	// call's id, or another call has it), media_omitted (an image or document; a note stands for it).
	Code    string `json:"code"`
	Message string `json:"message"`
}
