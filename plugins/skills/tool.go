package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	bundleID    = "skills"
	toolName    = "read_skill"
	maxNamed    = 64      // slugs in an answer
	answerSlack = 1 << 10 // bytes of an answer besides its content
)

// inputSchema does not name the slugs: a new skill must not invalidate what providers cache behind the tools.
const inputSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["slug"],
  "properties": {
    "slug": {"type": "string", "description": "the skill's slug, exactly as it is listed"},
    "file": {"type": "string", "description": "a text file in the skill's directory, by its path there, such as references/api.md; without it the skill itself is returned"}
  }
}`

func toolDefinition() phases.Tool {
	return phases.Tool{
		Name:        toolName,
		Description: "Returns the full text of one of the skills listed under Skills Runtime, or a text file of its directory.",
		InputSchema: json.RawMessage(inputSchema),
	}
}

// offer is the handler of the hook "tool".
func (s *skills) offer(_ context.Context, call *sdk.Call, in *phases.PreToolsInput) ([]phases.Contribution, error) {
	if !in.ToolCalling || !active(&call.Context) || len(s.library.set(&call.Context).Skills) == 0 {
		return nil, nil
	}
	return sdk.Reply(&phases.ToolBundle{BundleID: bundleID, Tools: []phases.Tool{toolDefinition()}})
}

// read is the handler of read_skill. A mistake of the model is an answer, not a failure of the plugin. Only skills of
// the call's own context can be read.
func (s *skills) read(_ context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
	var args struct {
		Slug string `json:"slug"`
		File string `json:"file"`
	}
	if err := sdk.DecodeArguments(call.Arguments, &args); err != nil || args.Slug == "" {
		//nolint:nilerr // the model made the mistake, and gets the answer
		return refusal(`the arguments are {"slug": …} or {"slug": …, "file": …}, both texts`), nil
	}
	set := s.library.set(&call.Context)
	skill := set.Find(args.Slug)
	if skill == nil {
		return refusal(unknown(set, args.Slug)), nil
	}
	text := fmt.Sprintf("Skill: %s\nDirectory: %s (paths in the text are relative to it)\n\n%s", skill.Slug, sdk.PlainName(skill.Dir), skill.Body)
	if args.File != "" {
		var err error
		if text, err = skillset.ReadFile(skill, args.File); err != nil {
			if failed, ok := errors.AsType[*skillset.FileError](err); ok {
				return refusal(fmt.Sprintf("the file %q of the skill %s %s", sdk.PlainName(args.File), skill.Slug, failed.Detail)), nil
			}
			return nil, err
		}
	}
	answer := sdk.Text(text)
	if most := call.Budget.MaxBytes; most > 0 && len(answer.Content) > most-answerSlack {
		return refusal(fmt.Sprintf("the text has %d bytes, more than an answer can have here", len(answer.Content))), nil
	}
	return answer, nil
}

func refusal(text string) *phases.ToolResult {
	out := sdk.Text(text)
	out.IsError = true
	return out
}

func unknown(set *skillset.Set, slug string) string {
	if len(set.Skills) == 0 {
		return "there are no skills here"
	}
	slugs := make([]string, len(set.Skills))
	for i := range set.Skills {
		slugs[i] = set.Skills[i].Slug
	}
	near := suggest.DidYouMean(slug, slugs)
	more := ""
	if n := len(slugs) - maxNamed; n > 0 {
		slugs, more = slugs[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("there is no skill %q%s; there are: %s%s", sdk.PlainName(slug), near, strings.Join(slugs, ", "), more)
}
