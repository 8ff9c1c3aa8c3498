package history

import "encoding/json"

// Role says whose an entry is.
type Role string

// The roles. There is no other: system text is the compiler's business.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleTool is an entry of results only.
	RoleTool Role = "tool"
)

// Known reports whether r is one of the roles.
func (r Role) Known() bool {
	return r == RoleUser || r == RoleAssistant || r == RoleTool
}

// Entry is one completed entry of a thread.
type Entry struct {
	// ID is the host's, to find the entry again in [Window.Dropped].
	ID string `json:"id,omitempty"`
	// TurnID groups entries. Without one, a turn begins at each entry of the
	// user's.
	TurnID string `json:"turn_id,omitempty"`
	Role   Role   `json:"role"`
	Text   string `json:"text,omitempty"`
	// Calls are the tool calls of an assistant's entry, made after its text.
	Calls []Call `json:"calls,omitempty"`
	// Results answer calls; in entries of RoleTool, or of the user's before its
	// text.
	Results []Result `json:"results,omitempty"`
	// Native is an assistant's entry as its provider wrote it, with what Text and
	// Calls cannot hold (signed reasoning). The adapter of the same provider
	// sends it instead of them. Nil where there is no more to say.
	Native *Native `json:"native,omitempty"`
}

// Call is one tool call that a model made.
type Call struct {
	// ID pairs the call with its result. A host whose provider gives none makes
	// one up.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Arguments are as the model wrote them: usually a JSON object, but models
	// make mistakes.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Result is the answer to a call.
type Result struct {
	// CallID is the call's ID.
	CallID string `json:"call_id"`
	// Tool is the name of the tool, which some providers want again.
	Tool    string `json:"tool,omitempty"`
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
}

// Native is an entry in the words of one provider.
type Native struct {
	// Provider is the name of the adapter that wrote Data.
	Provider string `json:"provider"`
	// Data is JSON that only that adapter reads.
	Data json.RawMessage `json:"data"`
}

// blank reports whether there is nothing to send of an entry.
func (e *Entry) blank() bool {
	return e.Text == "" && len(e.Calls) == 0 && len(e.Results) == 0 && e.Native == nil
}
