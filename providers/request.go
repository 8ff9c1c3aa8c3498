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
	codeBelowMinimum = "below_cache_minimum" // a prefix is too short to be cached
	// codeBreakpoint: a breakpoint of the plan has no place in the request, or the provider accepts no more.
	codeBreakpoint  = "breakpoint_omitted"
	codeNotBehind   = "section_not_behind" // a section could not be put behind the conversation
	codeToolRenamed = "tool_renamed"       // the provider does not accept the tool's name
	codeArguments   = "arguments_wrapped"  // the arguments of a past call are not a JSON object and were wrapped
	codeEntry       = "entry_omitted"      // an entry, a call or a result cannot be sent
	codeNative      = "native_ignored"     // an entry's native form could not be read; its text was sent
	codeCacheKey    = "cache_key_hashed"   // the plan's key is too long; its hash is sent
	codeToolOmitted = "tool_omitted"       // the provider does not accept so many tools
	codeCallID      = "call_id_rewritten"  // the provider does not accept a call's id, or another call has it
	codeResultText  = "error_text_added"   // a result that is an error had no text
	codeSignature   = "signature_missing"  // a call has no signature of the model's; a placeholder stands for it
	codeTokenizer   = "tokenizer_unknown"  // nothing is known about the model's tokens: counts are estimates
	codeMedia       = "media_omitted"      // the provider does not accept an image or document; a note stands for it
)

// Warning says what a provider's request cannot express. Messages name ids, models and numbers, never texts.
type Warning struct {
	// Code is below_cache_minimum, breakpoint_omitted, section_not_behind, tool_renamed, tool_omitted, arguments_wrapped,
	// entry_omitted, native_ignored, cache_stale (an explicit cache does not match), cache_key_hashed, call_id_rewritten,
	// error_text_added, signature_missing, tokenizer_unknown or media_omitted.
	Code    string `json:"code"`
	Message string `json:"message"`
}
