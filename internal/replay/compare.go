package replay

import (
	"encoding/json"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// compare says how two exchanges of one call compare.
func compare(was, now *runtime.Exchange) *Run {
	run := &Run{
		Plugin: was.Plugin, Subscription: was.Subscription, Recorded: answerOf(was), Now: answerOf(now), Differences: []Difference{},
	}
	if was.Err != nil && was.Err.Code == phases.CauseCancelled {
		run.Outcome = Skipped
		return run
	}
	a, b := essence(was), essence(now)
	run.Outcome, run.Differences = Same, differences(a, b)
	switch {
	case len(run.Differences) == 0:
	case now.Err != nil && was.Err == nil:
		run.Outcome = Failed
	default:
		run.Outcome = Differs
	}
	return run
}

// answerOf is the short form of an exchange's answer.
func answerOf(x *runtime.Exchange) Answer {
	a := Answer{MS: millis(x.Took), Hashes: []string{}}
	switch {
	case x.Err != nil:
		a.Code, a.PluginCode, a.Message = string(x.Err.Code), x.Err.PluginCode, x.Err.Message
	case x.Result != nil:
		for _, c := range x.Result.Contributions {
			a.Hashes = append(a.Hashes, hashOf(phases.Contributions{c}))
		}
	case x.ToolResult != nil && len(x.ToolResult.Content) > 0:
		a.Hashes = append(a.Hashes, hashOf(x.ToolResult.Content))
	}
	return a
}

// hashOf is the fingerprint of a contribution, in a list of one so that its kind is in
// it, or of a tool's content; empty for what is no JSON.
func hashOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if _, ok := v.(phases.Contributions); ok {
		data = data[1 : len(data)-1]
	}
	canonical, err := digest.JSON(nil, data)
	if err != nil {
		return ""
	}
	return digest.Fingerprint(nil, canonical)
}

// essence is what of an answer counts, as decoded JSON.
func essence(x *runtime.Exchange) any {
	var v any
	switch {
	case x.Err != nil:
		v = map[string]any{"error": map[string]any{"code": x.Err.Code, "plugin_code": x.Err.PluginCode}}
	case x.Result != nil:
		v = map[string]any{"contributions": phases.Contributions(x.Result.Contributions), "diagnostics": remarks(x.Result.Diagnostics)}
	case x.ToolResult != nil:
		v = map[string]any{"content": x.ToolResult.Content, "is_error": x.ToolResult.IsError, "diagnostics": remarks(x.ToolResult.Diagnostics)}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return map[string]any{"invalid": err.Error()} // of a plugin inside the host
	}
	return decoded(data)
}

// remarks are diagnostics as a plugin says them: whose they are is the host's to say.
func remarks(list []phases.Diagnostic) []phases.Diagnostic {
	out := append([]phases.Diagnostic{}, list...)
	for i := range out {
		out[i].Plugin, out[i].Subscription, out[i].OtherSubscription = "", "", ""
	}
	return out
}

// decoded is canonical JSON as a tree. Numbers are kept as they are written then.
func decoded(data []byte) any {
	canonical, err := digest.JSON(nil, data)
	if err != nil {
		return string(data)
	}
	return tree(canonical)
}
