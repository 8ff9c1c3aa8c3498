package providers

import (
	"regexp"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
)

// RuleID says what a rule is about: cache_key (what groups requests with one prefix), tool_name, tool_count (how many
// tools a request has), call_id (what pairs a call with its result), call_unique (no two calls of a request have one id),
// error_text (a result that is an error has a text), signature (the first call of a step has the model's), image and
// document (media types and bytes), media_count (how many images a request has).
type RuleID string

// What rules are about.
const (
	ruleCacheKey   RuleID = "cache_key"
	ruleToolName   RuleID = "tool_name"
	ruleToolCount  RuleID = "tool_count"
	ruleCallID     RuleID = "call_id"
	ruleCallUnique RuleID = "call_unique"
	ruleErrorText  RuleID = "error_text"
	RuleSignature  RuleID = "signature"
	ruleImage      RuleID = "image"
	ruleDocument   RuleID = "document"
	ruleMediaCount RuleID = "media_count"
)

// Rule is something that a provider refuses requests for, as it is known in public.
type Rule struct {
	Provider string
	ID       RuleID
	// Max is the most characters, bytes or things; 0 is no limit.
	Max int
	// Match is a regular expression for the whole value, or a media type; empty accepts all.
	Match string
	// Models are the models that it holds for, a regular expression; empty is all.
	Models string
	// Code is the warning about a request that had to be changed for it.
	Code string
	// Source says so. Seen is its day, or the one on which we read it if it has none, as 2006-01-02.
	Source, Seen string
}

const (
	plainName  = `[a-zA-Z0-9_-]+`
	geminiName = `[a-zA-Z_][a-zA-Z0-9_.:-]*`
	someImages = `image/(png|jpeg|webp|gif)`
)

// PublicRules returns the rules that adapters keep to. What breaks one is repaired or omitted, with a warning.
// Where sources differ, the stricter one counts.
func PublicRules() []Rule {
	return []Rule{
		{compiler.OpenAI, ruleCacheKey, 64, "", "", codeCacheKey, "https://github.com/theopenco/llmgateway/pull/3110", "2026-07-17"},
		{compiler.OpenAI, ruleToolName, 64, plainName, "", codeToolRenamed, "https://pkg.go.dev/github.com/openai/openai-go/v3@v3.95.0/shared#FunctionDefinition", "2026-11-21"},
		{compiler.OpenAI, ruleToolCount, 128, "", "", codeToolOmitted, "https://github.com/zed-industries/zed/issues/42393", "2025-11-10"},
		{compiler.OpenAI, ruleCallID, 64, plainName, "", codeCallID, "https://github.com/RooCodeInc/Roo-Code/pull/10763", "2026-01-16"},
		{compiler.OpenAI, ruleCallUnique, 0, "", "", codeCallID, "https://github.com/NousResearch/hermes-agent/issues/102629", "2026-09-04"},
		{compiler.OpenAI, ruleImage, 20 << 20, someImages, "", codeMedia, "https://openai-hd4n6.mintlify.app/docs/guides/images", "2026-11-23"},
		{compiler.OpenAI, ruleDocument, 0, `application/pdf|text/plain`, "", codeMedia, "https://developers.openai.com/api/docs/guides/file-inputs?api-mode=responses", "2026-11-23"},
		{compiler.OpenAI, ruleMediaCount, 500, "", "", codeMedia, "https://openai-hd4n6.mintlify.app/docs/guides/images", "2026-11-23"},

		{compiler.Anthropic, ruleToolName, 128, plainName, "", codeToolRenamed, "https://github.com/anthropics/claude-code/issues/96152", "2026-09-22"},
		{compiler.Anthropic, ruleCallID, 64, plainName, "", codeCallID, "https://github.com/maximhq/bifrost/issues/5097", "2026-07-10"},
		{compiler.Anthropic, ruleCallUnique, 0, "", "", codeCallID, "https://github.com/anthropics/claude-code/issues/28515", "2026-02-25"},
		{compiler.Anthropic, ruleErrorText, 0, "", "", codeResultText, "https://github.com/bytedance/trae-agent/pull/231", "2025-07-30"},
		{compiler.Anthropic, ruleImage, 5 << 20 / 4 * 3, someImages, "", codeMedia, "https://github.com/anthropics/claude-code/issues/14887", "2026-11-23"},
		{compiler.Anthropic, ruleDocument, 32 << 20 / 4 * 3, `application/pdf|text/plain`, "", codeMedia, "https://platform.claude.com/docs/en/build-with-claude/pdf-support", "2026-11-23"},
		{compiler.Anthropic, ruleMediaCount, 100, "", "", codeMedia, "https://platform.claude.com/docs/en/build-with-claude/vision.md", "2026-11-23"},

		{compiler.Gemini, ruleToolName, 64, geminiName, "", codeToolRenamed, "https://github.com/maximhq/bifrost/issues/1979", "2026-03-07"},
		{compiler.Gemini, ruleToolCount, 512, "", "", codeToolOmitted, "https://github.com/google-gemini/gemini-cli/issues/25440", "2026-04-15"},
		{compiler.Gemini, RuleSignature, 0, "", `gemini-([3-9]|\d\d).*`, CodeSignature, "https://ai.google.dev/gemini-api/docs/thought-signatures", "2026-11-23"},
		{compiler.Gemini, ruleImage, 20 << 20 / 4 * 3, `image/(png|jpeg|webp)`, "", codeMedia, "https://firebase.google.com/docs/ai-logic/input-file-requirements", "2026-11-23"},
		{compiler.Gemini, ruleDocument, 20 << 20 / 4 * 3, `application/pdf|text/plain`, "", codeMedia, "https://firebase.google.com/docs/ai-logic/analyze-documents", "2026-11-23"},
		{compiler.Gemini, ruleMediaCount, 3000, "", "", codeMedia, "https://firebase.google.com/docs/ai-logic/input-file-requirements", "2026-11-23"},
	}
}

// checks are the rules of one provider that hold for a model.
type checks map[RuleID]check

type check struct {
	Rule

	match *regexp.Regexp
}

func checksFor(provider, model string) checks {
	out := checks{}
	for _, r := range PublicRules() {
		if r.Provider == provider && (r.Models == "" || whole(r.Models).MatchString(bare(model))) {
			c := check{Rule: r}
			if r.Match != "" {
				c.match = whole(r.Match)
			}
			out[r.ID] = c
		}
	}
	return out
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }

// bare returns a model's name without a path in front of it.
func bare(model string) string { return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]) }

// has reports whether the provider has the rule.
func (c checks) has(id RuleID) bool {
	_, ok := c[id]
	return ok
}

// Has reports whether the provider has a rule for the request's model.
func (l *Layout) Has(id RuleID) bool { return l.rules.has(id) }

// breaks reports whether a value breaks a rule.
func (c checks) breaks(id RuleID, value string) bool {
	r, ok := c[id]
	return ok && (r.Max > 0 && len(value) > r.Max || r.match != nil && !r.match.MatchString(value))
}
