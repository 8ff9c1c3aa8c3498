package history

import "encoding/json"

// Role says whose an entry is.
type Role string

// The roles. System text is not an entry: the compiler writes it.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // results only
)

// Known reports whether r is one of the roles.
func (r Role) Known() bool {
	return r == RoleUser || r == RoleAssistant || r == RoleTool
}

// Entry is one completed entry of a thread.
type Entry struct {
	// ID is the host's, to find the entry again in [Window.Dropped].
	ID string `json:"id,omitempty"`
	// TurnID groups entries. Without one, a turn begins at each user's entry.
	TurnID string `json:"turn_id,omitempty"`
	Role   Role   `json:"role"`
	Text   string `json:"text,omitempty"`
	// Calls are the tool calls of an assistant's entry, made after its text.
	Calls []Call `json:"calls,omitempty"`
	// Results answer calls, in entries of RoleTool or before a user's text.
	Results []Result `json:"results,omitempty"`
	// Native is an assistant's entry as its provider wrote it (signed reasoning). The same
	// provider's adapter sends it instead of Text and Calls.
	Native *Native `json:"native,omitempty"`
}

// Call is one tool call that a model made.
type Call struct {
	// ID pairs the call with its result. A host makes one up if its provider gives none.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Arguments are as the model wrote them: usually, not always, a JSON object.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Result is the answer to a call.
type Result struct {
	CallID  string `json:"call_id"`
	Tool    string `json:"tool,omitempty"` // the name of the tool, which some providers want
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
}

// Native is an entry in the words of one provider.
type Native struct {
	Provider string          `json:"provider"` // the name of the adapter that wrote Data
	Data     json.RawMessage `json:"data"`     // JSON that only that adapter reads
}
