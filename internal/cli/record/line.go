// Package record keeps what an engine's plugins were sent and what they answered in a file, so that it can be
// inspected, and replayed without host or model. [Open] makes a [Writer], whose Write is runtime.Options.OnExchange;
// [NewReader] reads a file. To replay one see "grapnel plugin replay", and runtime.Engine.Replay for one exchange.
//
// # The format
//
// A file is JSON Lines in UTF-8. Each writing program begins a session with a header,
// {"grapnel_record":1,"session":…,"kind":"header",…}; other lines name their session, so that two programs may append
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

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Format is the version of the format that this package writes.
const Format = 1

// Kind says what a line is: an exchange, or one of these.
type Kind = runtime.ExchangeKind

// The kinds of lines that are no exchanges.
const (
	KindHeader Kind = "header"
	KindGap    Kind = "gap"
	KindEnd    Kind = "end"
)

// Kinds lists the kinds.
func Kinds() []Kind {
	return []Kind{KindHeader, runtime.ExchangeConfigure, runtime.ExchangeDispatch, runtime.ExchangeTool, runtime.ExchangeHost, KindGap, KindEnd}
}

// Line is one line of a file. It is exported for its JSON Schema; use a [Reader] to read.
type Line struct {
	Format  int    `json:"grapnel_record,omitempty" jsonschema:"version of the format; in headers only"`
	Session string `json:"session"                  jsonschema:"whose line it is: a word that the session's header has made up"`
	Program string `json:"program,omitempty"        jsonschema:"who has recorded; in headers only"`

	runtime.Exchange

	Dispatch  *dispatch  `json:"dispatch,omitempty"`
	Error     *failure   `json:"error,omitempty"      jsonschema:"why there is no answer"`
	HostCalls []hostCall `json:"host_calls,omitempty" jsonschema:"what the plugin asked of the host meanwhile"`

	Recorded int    `json:"recorded,omitempty" jsonschema:"exchanges of the session in the file; in the last line of a session only"`
	Omitted  int    `json:"omitted,omitempty"  jsonschema:"exchanges that are not in the file: before a gap, or of the whole session"`
	Why      string `json:"why,omitempty"      jsonschema:"why exchanges were omitted"`
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
	runtime.HostCall

	Error *failure `json:"error,omitempty"`
}
