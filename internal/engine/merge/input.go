package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
)

// RewriteInput returns the input of a phase with its rewrites applied, a copy unless there are none.
func RewriteInput(in phases.Input, rewrites []phases.MergedRewrite) (phases.Input, error) {
	if len(rewrites) == 0 {
		return in, nil
	}
	switch in := in.(type) {
	case *phases.ToolPreCallInput:
		args, err := ApplyRewrites(in.Arguments, rewrites)
		if err != nil {
			return nil, err
		}
		out := *in
		out.Arguments = args
		return &out, nil
	case *phases.ToolPostCallInput:
		return rewrittenResult(in, rewrites)
	}
	return nil, fmt.Errorf("the input of %s cannot be rewritten", phases.PhaseOf(in))
}

// rewrittenResult rewrites a tool's result: JSON inside, any other text as one JSON string that the path "" replaces.
func rewrittenResult(in *phases.ToolPostCallInput, rewrites []phases.MergedRewrite) (phases.Input, error) {
	doc := json.RawMessage(in.Result.Text)
	if !json.Valid(doc) {
		quoted, err := json.Marshal(in.Result.Text)
		if err != nil {
			return nil, err
		}
		doc = quoted
	}
	doc, err := ApplyRewrites(doc, rewrites)
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

// Differs returns the owner of the first rewrite, other than the subscription's own, that only one of the lists has;
// "" if there is none.
func Differs(before, after []phases.MergedRewrite, subscription string) string {
	others := func(list []phases.MergedRewrite) []phases.MergedRewrite {
		return slices.DeleteFunc(slices.Clone(list), func(r phases.MergedRewrite) bool { return r.Owner == subscription })
	}
	before, after = others(before), others(after)
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(after):
			return before[i].Owner
		case i >= len(before), before[i].Path != after[i].Path, before[i].Owner != after[i].Owner, !bytes.Equal(before[i].Value, after[i].Value):
			return after[i].Owner
		}
	}
	return ""
}

// Owners are the owners of rewrites, each once.
func Owners(list []phases.MergedRewrite) []string {
	var names []string
	for i := range list {
		if !slices.Contains(names, list[i].Owner) {
			names = append(names, list[i].Owner)
		}
	}
	return names
}

// Verdict is the strongest verdict among contributions, with its reason code; empty without a decision.
func Verdict(entries []Entry) (strongest phases.Verdict, reasonCode string) {
	for i := range entries {
		decision, ok := entries[i].Value.(*phases.Decision)
		if ok && decision.Verdict.Strength() > strongest.Strength() {
			strongest, reasonCode = decision.Verdict, decision.ReasonCode
		}
	}
	return strongest, reasonCode
}

// Remarks are the diagnostics that a hook has contributed.
func Remarks(h *Hook, entries []Entry) []phases.Diagnostic {
	var list []phases.Diagnostic
	for i := range entries {
		if v, ok := entries[i].Value.(*phases.ManifestDiagnostic); ok {
			list = append(list, remark(h, v))
		}
	}
	return list
}

func remark(h *Hook, v *phases.ManifestDiagnostic) phases.Diagnostic {
	d := phases.Diagnostic{Code: v.Code, Severity: v.Severity, Message: v.Message, SafeForUser: v.SafeForUser}.Remark(h.Visibility)
	d.Plugin, d.Subscription = h.Plugin, h.Subscription
	return d
}
