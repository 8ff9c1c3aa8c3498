package runtime

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// rewritten returns the input with rewrites applied: to the arguments of a tool
// before its call, to its result after it. Other inputs take none.
func rewritten(in phases.Input, rewrites []phases.MergedRewrite) (phases.Input, error) {
	if len(rewrites) == 0 {
		return in, nil
	}
	switch in := in.(type) {
	case *phases.ToolPreCallInput:
		args, err := merge.ApplyRewrites(in.Arguments, rewrites)
		if err != nil {
			return nil, err
		}
		out := *in
		out.Arguments = args
		return &out, nil
	case *phases.ToolPostCallInput:
		return rewrittenResult(in, rewrites)
	}
	return nil, fmt.Errorf("the input of %s cannot be rewritten", in.Phase())
}

// rewrittenResult rewrites a tool's result. A result that is JSON is rewritten
// inside; any other text is one JSON string, replaced as a whole by the path "".
func rewrittenResult(in *phases.ToolPostCallInput, rewrites []phases.MergedRewrite) (phases.Input, error) {
	doc := json.RawMessage(in.Result.Text)
	if !json.Valid(doc) {
		quoted, err := json.Marshal(in.Result.Text)
		if err != nil {
			return nil, err
		}
		doc = quoted
	}
	doc, err := merge.ApplyRewrites(doc, rewrites)
	if err != nil {
		return nil, err
	}
	text := string(doc)
	var plain string
	if json.Unmarshal(doc, &plain) == nil {
		text = plain
	}
	out := *in
	out.Result = phases.Preview{Text: text, OriginalLength: in.Result.OriginalLength, Truncated: in.Result.Truncated}
	if !out.Result.Truncated {
		out.Result.OriginalLength = utf8.RuneCountInString(text)
	}
	return &out, nil
}
