package gateway

import (
	"encoding/json"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// exchangesBytes is how much JSON of exchanges a result has.
const exchangesBytes = 1 << 20

// exchanged is what one hook was sent, and what it answered.
type exchanged struct {
	Kind         runtime.ExchangeKind `json:"kind"`
	Plugin       string               `json:"plugin"`
	Version      string               `json:"plugin_version"`
	Subscription string               `json:"subscription"`
	TookMS       float64              `json:"took_ms"`
	Sent         json.RawMessage      `json:"sent"           jsonschema:"the dispatch, without what was withheld"`
	Answer       json.RawMessage      `json:"answer"         jsonschema:"the result before it is checked, merged or cut; null if there is none"`
	Error        *phases.Error        `json:"error"          jsonschema:"why there is no answer; null if there is one"`
}

// exchanges collects those of one dispatch.
type exchanges struct {
	mu      sync.Mutex
	list    []exchanged
	bytes   int
	omitted int
}

func (e *exchanges) add(x *runtime.Exchange) {
	row := exchanged{Kind: x.Kind, Plugin: x.Plugin, Version: x.Version, Subscription: x.Subscription, TookMS: x.TookMS, Error: x.Err}
	var sent, answer error
	row.Sent, sent = json.Marshal(x.Dispatch)
	row.Answer, answer = json.Marshal(x.Result)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bytes += len(row.Sent) + len(row.Answer); sent != nil || answer != nil || e.bytes > exchangesBytes {
		e.omitted++
		return
	}
	e.list = append(e.list, row)
}

func (e *exchanges) all() (list []exchanged, omitted int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.list, e.omitted
}
