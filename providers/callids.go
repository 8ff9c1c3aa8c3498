package providers

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
)

// callIDs makes the ids of calls fit for the provider, in the order of the conversation.
type callIDs struct {
	*Layout

	used map[string]bool
}

// rewrite returns the entry's calls and native form with ids that the provider accepts.
func (ids *callIDs) rewrite(e *history.Entry) ([]history.Call, *history.Native) {
	calls, native := e.Calls, e.Native
	for i := range e.Calls {
		old := e.Calls[i].ID
		id := ids.fitting(old, e)
		ids.used[id] = true
		if id == old {
			continue
		}
		if &calls[0] == &e.Calls[0] {
			calls = slices.Clone(calls)
		}
		calls[i].ID = id
		native = renamedIn(native, old, id)
		ids.Warnf(codeCallID, "the call %s is called %s: the provider does not accept its id, or an earlier call has it", old, id)
		ids.change(manifest.RequestCallID, old, old, id)
	}
	return calls, native
}

// fitting returns the id itself if the provider takes it, and otherwise one that depends on the entry alone.
func (ids *callIDs) fitting(id string, e *history.Entry) string {
	twice := ids.used[id] && ids.rules.has(ruleCallUnique)
	if !twice && !ids.rules.breaks(ruleCallID, id) {
		return id
	}
	fitted := ids.rules.fit(ruleCallID, id)
	for n := 0; ; n++ {
		of := fmt.Sprintf("%s %s %s %d", e.TurnID, e.ID, id, n)
		if next := withHash(fitted, of, ids.rules[ruleCallID].Max); !ids.used[next] {
			return next
		}
	}
}

// renamedIn replaces a call's id in an entry's native form, a list of blocks or items. A form that is not such a list
// is given up: the entry's text and calls say the same.
func renamedIn(native *history.Native, old, id string) *history.Native {
	if native == nil {
		return nil
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(native.Data, &blocks); err != nil {
		return nil
	}
	for i, raw := range blocks {
		var block map[string]json.RawMessage
		if err := json.Unmarshal(raw, &block); err != nil {
			return nil
		}
		member := map[string]string{`"tool_use"`: "id", `"function_call"`: "call_id"}[string(block["type"])]
		var was string
		if member == "" || json.Unmarshal(block[member], &was) != nil || was != old {
			continue
		}
		block[member], _ = json.Marshal(id) //nolint:errchkjson // strings always encode
		blocks[i], _ = json.Marshal(block)  //nolint:errchkjson // decoded before
	}
	data, err := json.Marshal(blocks)
	if err != nil {
		return nil
	}
	return &history.Native{Provider: native.Provider, Data: data}
}
