package skills

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	bundleID = "skills"
	toolName = "read_skill"
)

// maxNamed bounds how many slugs an answer to an unknown one names.
const maxNamed = 64

// answerSlack is the room of an answer for all but its content.
const answerSlack = 1 << 10

// inputSchema does not name the slugs: tools stand first in what providers cache,
// and a new skill must not cost all of that.
const inputSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["slug"],
  "properties": {
    "slug": {"type": "string", "description": "the skill's slug, exactly as it is listed"},
    "file": {"type": "string", "description": "a text file in the skill's folder, by its path there, such as references/api.md; without it the skill itself is returned"}
  }
}`

// toolDefinition is read_skill as a model sees it, always the same.
func toolDefinition() phases.Tool {
	return phases.Tool{
		Name:        toolName,
		Description: "Returns the full text of one of the skills listed under Skills Runtime, or a text file of its folder.",
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

// arguments are those of read_skill.
type arguments struct {
	Slug string `json:"slug"`
	File string `json:"file"`
}

// read is the handler of read_skill. A mistake of the model is an answer to it,
// not a failure of the plugin. Only skills of the call's own context can be read.
func (s *skills) read(_ context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
	var args arguments
	dec := json.NewDecoder(bytes.NewReader(call.Arguments))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil || args.Slug == "" {
		//nolint:nilerr // the model made the mistake, and is told
		return refusal(`the arguments are {"slug": …} or {"slug": …, "file": …}, both texts`), nil
	}
	set := s.library.set(&call.Context)
	skill := set.Find(args.Slug)
	if skill == nil {
		return refusal(unknown(set, args.Slug)), nil
	}
	text := fmt.Sprintf("Skill: %s\nFolder: %s (paths in the text are relative to it)\n\n%s", skill.Slug, skillset.PrintPath(skill.Dir), skill.Body)
	if args.File != "" {
		var err error
		if text, err = skillset.ReadFile(s.library.view, skill, args.File); err != nil {
			if failed, ok := errors.AsType[*skillset.FileError](err); ok {
				return refusal(fmt.Sprintf("the file %q of the skill %s %s", skillset.PrintPath(args.File), skill.Slug, failed.Detail)), nil
			}
			return nil, err
		}
	}
	answer := sdk.Text(text)
	if most := call.Room.MaxBytes; most > 0 && len(answer.Content) > most-answerSlack {
		return refusal(fmt.Sprintf("the text has %d bytes, more than an answer can have here", len(answer.Content))), nil
	}
	return answer, nil
}

// refusal is an answer that tells the model what it did wrong.
func refusal(text string) *phases.ToolResult {
	out := sdk.Text(text)
	out.IsError = true
	return out
}

// unknown says that there is no such skill, and which there are.
func unknown(set *skillset.Set, slug string) string {
	if len(set.Skills) == 0 {
		return "there are no skills here"
	}
	slugs := make([]string, len(set.Skills))
	for i := range set.Skills {
		slugs[i] = set.Skills[i].Slug
	}
	near := phases.DidYouMean(slug, slugs)
	more := ""
	if n := len(slugs) - maxNamed; n > 0 {
		slugs, more = slugs[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("there is no skill %q%s; there are: %s%s", skillset.PrintPath(slug), near, strings.Join(slugs, ", "), more)
}
