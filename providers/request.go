package providers

import (
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// Request is everything that goes into one call of a model. Adapters only read
// it.
type Request struct {
	// Model is the provider's name for the model.
	Model string
	// MaxTokens bounds the response. 0 leaves it to the provider; Anthropic wants
	// a number.
	MaxTokens int
	// Prompt is the compiled prompt with its cache plan.
	Prompt compiler.Prompt
	// Sections are the rows of the prompt, from the compiler's output or from the
	// manifest. Without them there is no breakpoint inside the dynamic part.
	Sections []manifest.Section
	// Tools are the tools that the model may call, in any order.
	Tools []phases.Tool
	// History is the past, as [history.Select] chose it.
	History history.Window
	// Turn is the current turn so far, the user's message first. All its calls
	// must have been answered.
	Turn []history.Entry
	// AfterConversation are ids of dynamic sections that are sent behind the
	// conversation instead of in the system prompt, in the prompt's order. What
	// changes with each turn, such as memory_recall, costs the provider's cache of
	// all that stands behind it: in the system prompt that is the whole history,
	// here it is nothing. The price is that the model reads it beside the user's
	// words (OpenAI: as a system message), which has less weight.
	//
	// It takes rows of Sections. Ids that are not in the prompt mean nothing. The
	// manifest knows nothing of it: it predicts as if all was in the system prompt.
	AfterConversation []string
	// CountTokens estimates tokens for warnings about cache minimums; nil leaves
	// these out. [history.Counter] has one.
	CountTokens func(string) int
	// Facts are the numbers about models; nil means those that are compiled in.
	Facts *facts.Table
}

// Known returns what is known of the request's model.
func (r Request) Known(provider string) (facts.Found, error) {
	table := r.Facts
	if table == nil {
		loaded, err := facts.Load()
		if err != nil {
			return facts.Found{}, err
		}
		table = loaded
	}
	found, ok := table.Lookup(provider, r.Model)
	if !ok {
		return facts.Found{}, fmt.Errorf("model facts: nothing about provider %q", provider)
	}
	return found, nil
}

// Code names a kind of warning.
type Code string

// The codes.
const (
	// CodeBelowMinimum: a prefix is too short to be cached.
	CodeBelowMinimum Code = "below_cache_minimum"
	// CodeBreakpoint: a breakpoint of the plan has no place in the request, or
	// the provider takes no more.
	CodeBreakpoint Code = "breakpoint_left_out"
	// CodeNotBehind: a section could not be put behind the conversation.
	CodeNotBehind Code = "section_not_behind"
	// CodeToolRenamed: the provider does not take the tool's name.
	CodeToolRenamed Code = "tool_renamed"
	// CodeArguments: the arguments of a past call are no JSON object and were put
	// into one.
	CodeArguments Code = "arguments_wrapped"
	// CodeEntry: an entry, a call or a result cannot be sent.
	CodeEntry Code = "entry_left_out"
	// CodeNative: an entry's native form could not be read; its text was sent.
	CodeNative Code = "native_ignored"
	// CodeCacheStale: an explicit cache is not of this prompt and was not used.
	CodeCacheStale Code = "cache_stale"
)

// Warning is something that the request does not say as it was meant. Messages
// name ids, models and numbers, never texts.
type Warning struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}
