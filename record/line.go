package record

import (
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Format is the version of the format that this package writes.
const Format = 1

// Kind says what a line is.
type Kind string

// The kinds of lines. Those of exchanges are the engine's words.
const (
	KindHeader    Kind = "header"
	KindConfigure Kind = Kind(runtime.ExchangeConfigure)
	KindDispatch  Kind = Kind(runtime.ExchangeDispatch)
	KindTool      Kind = Kind(runtime.ExchangeTool)
	KindHost      Kind = Kind(runtime.ExchangeHost)
	KindGap       Kind = "gap"
	KindEnd       Kind = "end"
)

// Kinds lists the kinds.
func Kinds() []Kind {
	return []Kind{KindHeader, KindConfigure, KindDispatch, KindTool, KindHost, KindGap, KindEnd}
}

// Line is one line of a file. Which fields are set depends on its kind. It is
// exported for its JSON Schema; use a [Reader] to read.
type Line struct {
	Format  int       `json:"grapnel_record,omitempty" jsonschema:"version of the format; in headers only"`
	Kind    Kind      `json:"kind"`
	Session string    `json:"session"                  jsonschema:"whose line it is: a word that the session's header has made up"`
	Begin   time.Time `json:"begin"                    jsonschema:"when the exchange began, or the line was written"`
	Program string    `json:"program,omitempty"        jsonschema:"who has recorded; in headers only"`

	Plugin       string  `json:"plugin,omitempty"       jsonschema:"the operator's name"`
	Version      string  `json:"version,omitempty"      jsonschema:"the plugin's version"`
	SHA256       string  `json:"sha256,omitempty"       jsonschema:"checksum of its program, or builtin, in_process, unpinned"`
	Subscription string  `json:"subscription,omitempty" jsonschema:"the hook's full id, or PLUGIN.TOOL"`
	Start        uint64  `json:"start,omitempty"        jsonschema:"which start of a plugin answered; its configure line has the same"`
	Generation   uint64  `json:"generation,omitempty"`
	Incarnation  uint64  `json:"incarnation,omitempty"`
	TookMS       float64 `json:"took_ms,omitempty"`

	Configuration *configuration      `json:"configuration,omitempty"`
	Description   *phases.Description `json:"description,omitempty"`
	Dispatch      *dispatch           `json:"dispatch,omitempty"`
	Result        *result             `json:"result,omitempty"`
	ToolCall      *toolCall           `json:"tool_call,omitempty"`
	ToolResult    *toolResult         `json:"tool_result,omitempty"`
	Error         *failure            `json:"error,omitempty"         jsonschema:"why there is no answer"`
	HostCalls     []hostCall          `json:"host_calls,omitempty"    jsonschema:"what the plugin asked of the host meanwhile"`

	Recorded int    `json:"recorded,omitempty" jsonschema:"exchanges of the session in the file; in the last line of a session only"`
	LeftOut  int    `json:"left_out,omitempty" jsonschema:"exchanges that are not in the file: before a gap, or of the whole session"`
	Why      string `json:"why,omitempty"      jsonschema:"why exchanges were left out"`
}

// configuration is what a plugin was configured with.
type configuration struct {
	Instance string            `json:"instance"`
	Config   json.RawMessage   `json:"config,omitempty"`
	Secrets  map[string]string `json:"secrets,omitempty" jsonschema:"variables of the environment by JSON pointers into config, where the values are ***"`
	Services []string          `json:"services"`
}

// dispatch is phases.Dispatch.
type dispatch struct {
	Subscription   string                `json:"subscription"`
	Hook           string                `json:"hook"`
	Phase          phases.Phase          `json:"phase"`
	Context        phases.Context        `json:"context"`
	Input          json.RawMessage       `json:"input"`
	Withheld       []string              `json:"withheld,omitempty"`
	Policies       []phases.PolicyEntry  `json:"policies,omitempty"`
	Contexts       []phases.ContextEntry `json:"contexts,omitempty"`
	Attempt        int                   `json:"attempt"`
	IdempotencyKey string                `json:"idempotency_key,omitempty"`
	Trace          phases.Trace          `json:"trace,omitzero"`
	Room           room                  `json:"room"`
	RemainingNS    int64                 `json:"remaining_ns"`
	Generation     uint64                `json:"generation"`
	Incarnation    uint64                `json:"incarnation"`
}

// room is phases.Room.
type room struct {
	MaxChars int `json:"max_chars"`
	MaxBytes int `json:"max_bytes"`
}

// toolCall is phases.ToolCall.
type toolCall struct {
	Tool           string               `json:"tool"`
	Arguments      json.RawMessage      `json:"arguments,omitempty"`
	Context        phases.Context       `json:"context"`
	Policies       []phases.PolicyEntry `json:"policies,omitempty"`
	OutsideTurn    bool                 `json:"outside_turn,omitempty"`
	IdempotencyKey string               `json:"idempotency_key,omitempty"`
	Trace          phases.Trace         `json:"trace,omitzero"`
	Room           room                 `json:"room"`
	RemainingNS    int64                `json:"remaining_ns"`
	Generation     uint64               `json:"generation"`
	Incarnation    uint64               `json:"incarnation"`
}

// result is phases.Result.
type result struct {
	Contributions phases.Contributions `json:"contributions"`
	Diagnostics   []phases.Diagnostic  `json:"diagnostics,omitempty"`
}

// toolResult is phases.ToolResult.
type toolResult struct {
	Content     json.RawMessage     `json:"content,omitempty"`
	IsError     bool                `json:"is_error"`
	Diagnostics []phases.Diagnostic `json:"diagnostics,omitempty"`
}

// failure is phases.Error as it crosses the wire.
type failure struct {
	Code       phases.Cause `json:"code"`
	Message    string       `json:"message"`
	PluginCode string       `json:"plugin_code,omitempty"`
	Retryable  bool         `json:"retryable,omitempty"`
}

// hostCall is runtime.HostCall.
type hostCall struct {
	Service string          `json:"service"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
	TookMS  float64         `json:"took_ms"`
}
