package replay

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

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

func answerOf(x *runtime.Exchange) Answer {
	a := Answer{MS: x.TookMS, Hashes: []string{}}
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

// hashOf is the hash of a contribution, in a list of one to show its kind, or of a
// tool's content; empty for what is not JSON.
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
	return digest.SHA256(canonical)
}

func essence(x *runtime.Exchange) any {
	var v any
	switch {
	case x.Err != nil:
		v = map[string]any{"error": map[string]any{"code": x.Err.Code, "plugin_code": x.Err.PluginCode}}
	case x.Result != nil:
		v = map[string]any{"contributions": x.Result.Contributions, "diagnostics": remarks(x.Result.Diagnostics)}
	case x.ToolResult != nil:
		v = map[string]any{"content": x.ToolResult.Content, "is_error": x.ToolResult.IsError, "diagnostics": remarks(x.ToolResult.Diagnostics)}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return map[string]any{"invalid": err.Error()} // of a plugin inside the host
	}
	return decoded(data)
}

// decoded is canonical JSON as a tree.
func decoded(data []byte) any {
	canonical, err := digest.JSON(nil, data)
	if err != nil {
		return string(data)
	}
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(data)
	}
	return v
}

// remarks are diagnostics as a plugin writes them, without their owner.
func remarks(list []phases.Diagnostic) []phases.Diagnostic {
	out := append([]phases.Diagnostic{}, list...)
	for i := range out {
		out[i].Plugin, out[i].Subscription, out[i].OtherSubscription = "", "", ""
	}
	return out
}

const maxDifferences = 20 // bounds the reported differences of one run

// Difference is one place where two answers differ.
type Difference struct {
	Pointer string `json:"pointer" jsonschema:"JSON pointer into the answer; empty is the whole"`
	// Recorded and Now are absent where there is no such value.
	Recorded json.RawMessage `json:"recorded,omitempty"`
	Now      json.RawMessage `json:"now,omitempty"`
}

// differences are the places where two trees differ, in order; never nil.
func differences(a, b any) []Difference {
	found := []Difference{}
	walk(&found, "", a, b, true, true)
	return found
}

func walk(found *[]Difference, at string, a, b any, hasA, hasB bool) {
	if len(*found) == maxDifferences {
		return
	}
	if hasA && hasB {
		switch x := a.(type) {
		case map[string]any:
			if y, ok := b.(map[string]any); ok {
				members(found, at, x, y)
				return
			}
		case []any:
			if y, ok := b.([]any); ok {
				items(found, at, x, y)
				return
			}
		default:
			if a == b {
				return
			}
		}
	}
	d := Difference{Pointer: at}
	if hasA {
		d.Recorded = encoded(a)
	}
	if hasB {
		d.Now = encoded(b)
	}
	*found = append(*found, d)
}

func members(found *[]Difference, at string, a, b map[string]any) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, hasA := a[name]
		y, hasB := b[name]
		walk(found, at+"/"+escape.Replace(name), x, y, hasA, hasB)
	}
}

func items(found *[]Difference, at string, a, b []any) {
	for i := range max(len(a), len(b)) {
		var x, y any
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		walk(found, at+"/"+strconv.Itoa(i), x, y, i < len(a), i < len(b))
	}
}

func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null") // a tree out of JSON always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
