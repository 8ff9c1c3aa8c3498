// Package record keeps what an engine's plugins were sent and what they answered in a file, so that it can be
// inspected, and replayed without host or model. [Open] makes a [Writer], whose Write is runtime.Options.OnExchange;
// [NewReader] reads a file. To replay one see "grapnel plugin replay", and runtime.Engine.Replay for one exchange.
//
// # The format
//
// A file is JSON Lines in UTF-8. Each writing program begins a session with a header,
// {"grapnel_record":1,"kind":"header","session":…}; other lines name their session, so that two programs may append
// to one file. The kinds "configure", "dispatch", "tool" and "host" are exchanges; "gap" says that some are missing,
// and why; "end" closes a session with its counts. Fields have the names of the wire contract. "grapnel schema
// record" prints the JSON Schema of a line ([Line]).
//
// A line is written by one system call before the caller of the plugin goes on: a killed program leaves at most its
// last line unfinished, which readers tolerate. A line that cannot be written is counted and reported. A disk that
// hangs holds up recorded calls: choose a local one.
//
// # What is in it
//
// Everything that plugins were shown: texts of users, tool arguments, answers of models. The file is for its owner
// alone (mode 0600). Configuration values from the environment are replaced by "***", with the variable's name beside
// them, but not in a plugin's answers. A plugin's environment is not recorded.
//
// Stability: internal; the format is versioned and only grows.
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

// The kinds of lines.
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

// Line is one line of a file. It is exported for its JSON Schema; use a [Reader] to read.
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
	Result        *phases.Result      `json:"result,omitempty"`
	ToolCall      *phases.ToolCall    `json:"tool_call,omitempty"`
	ToolResult    *phases.ToolResult  `json:"tool_result,omitempty"`
	Error         *failure            `json:"error,omitempty"         jsonschema:"why there is no answer"`
	HostCalls     []hostCall          `json:"host_calls,omitempty"    jsonschema:"what the plugin asked of the host meanwhile"`

	Recorded int    `json:"recorded,omitempty" jsonschema:"exchanges of the session in the file; in the last line of a session only"`
	Omitted  int    `json:"omitted,omitempty"  jsonschema:"exchanges that are not in the file: before a gap, or of the whole session"`
	Why      string `json:"why,omitempty"      jsonschema:"why exchanges were omitted"`
}

type configuration struct {
	Instance string            `json:"instance"`
	Config   json.RawMessage   `json:"config,omitempty"`
	Secrets  map[string]string `json:"secrets,omitempty" jsonschema:"variables of the environment by JSON pointers into config, where the values are ***"`
	Services []string          `json:"services"`
}

type dispatch struct {
	phases.Dispatch

	Input json.RawMessage `json:"input"`
}

type failure struct {
	Code       phases.Cause `json:"code"`
	Message    string       `json:"message"`
	PluginCode string       `json:"plugin_code,omitempty"`
	Retryable  bool         `json:"retryable,omitempty"`
}

type hostCall struct {
	Service string          `json:"service"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
	TookMS  float64         `json:"took_ms"`
}
