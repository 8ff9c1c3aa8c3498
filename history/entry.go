package history

import (
	"encoding/json"
	"strings"
)

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
	// Media are images and documents of a user's or a tool's entry. They stand behind its results and before its text.
	Media []Media `json:"media,omitempty"`
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

// Media is an image or a document. Adapters say in a note what a provider does not accept.
type Media struct {
	Type string `json:"type"`           // the media type, such as image/png or application/pdf
	Name string `json:"name,omitempty"` // of the file, for people and for models that want one
	// Data are its bytes. Without them, URI is where the provider finds it.
	Data []byte `json:"data,omitempty"`
	URI  string `json:"uri,omitempty"`
	// Tokens is what the provider charges. 0 is a guess: 1,600 for an image; for a document what its text would take,
	// or 3,000 and one for every 16 bytes of other data.
	Tokens int `json:"tokens,omitempty"`
}

// Image reports whether it is an image.
func (m *Media) Image() bool { return strings.HasPrefix(m.Type, "image/") }

// Native is an entry in the words of one provider.
type Native struct {
	Provider string          `json:"provider"` // the name of the adapter that wrote Data
	Data     json.RawMessage `json:"data"`     // JSON that only that adapter reads
}
