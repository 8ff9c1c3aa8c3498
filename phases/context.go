package phases

import (
	"encoding/json"
	"maps"
	"time"
)

// Mode is the kind of turn. Hosts may use words of their own beside these.
type Mode string

// The modes that Grapnel itself knows.
const (
	ModeChat   Mode = "chat"
	ModeAgent  Mode = "agent"
	ModeTask   Mode = "task"
	ModeSystem Mode = "system"
)

// Profile is how much of the prompt is compiled.
type Profile string

// The profiles. The empty one counts as ProfileFull.
const (
	ProfileFull    Profile = "full"
	ProfileMinimal Profile = "minimal"
	ProfileNone    Profile = "none"
)

// Actor is who caused the turn.
type Actor struct {
	// Kind is a word such as "user", "agent" or "system".
	Kind string `json:"kind,omitempty"`
	// ID is the host's id for it.
	ID string `json:"id,omitempty"`
}

// Context says where and when a phase is dispatched. Empty fields are unknown.
type Context struct {
	WorkspaceID string `json:"workspace_id,omitempty"`
	ThreadID    string `json:"thread_id,omitempty"`
	// ConversationThreadID is the thread whose instructions and memory apply: a
	// sub-task reads those of the conversation that it belongs to. Empty means
	// ThreadID; see Conversation.
	ConversationThreadID string `json:"conversation_thread_id,omitempty"`
	TurnID               string `json:"turn_id,omitempty"`
	TaskID               string `json:"task_id,omitempty"`
	AgentID              string `json:"agent_id,omitempty"`
	SessionID            string `json:"session_id,omitempty"`
	ParentSessionID      string `json:"parent_session_id,omitempty"`
	// Epoch counts compactions, clears and reloads of the session, from 0.
	Epoch   int     `json:"epoch,omitempty"`
	Mode    Mode    `json:"mode,omitempty"`
	Profile Profile `json:"profile,omitempty"`
	Actor   Actor   `json:"actor,omitzero"`
	// Now is the turn's clock. Hooks use it instead of their own.
	Now time.Time `json:"now,omitzero"`
	// Dir is the working folder, an absolute path.
	Dir string `json:"dir,omitempty"`
	// DirRoot is the directory that reading for Dir must not leave, neither upwards
	// nor by a link. Where it is set, both are real paths: a link on the way from one
	// to the other was put there since. Empty means that Dir is not bounded.
	DirRoot string `json:"dir_root,omitempty"`
	// Flags are the host's switches; a missing one is false.
	Flags map[string]bool `json:"flags,omitempty"`
	// Metadata is the host's own data, JSON by name. Plugins need the grant
	// see: metadata.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// Conversation returns the effective conversation thread.
func (c Context) Conversation() string {
	if c.ConversationThreadID != "" {
		return c.ConversationThreadID
	}
	return c.ThreadID
}

// Clone returns a copy that shares no mutable memory with c.
func (c Context) Clone() Context {
	c.Flags = maps.Clone(c.Flags)
	if c.Metadata != nil {
		m := make(map[string]json.RawMessage, len(c.Metadata))
		for k, v := range c.Metadata {
			m[k] = cloneRaw(v)
		}
		c.Metadata = m
	}
	return c
}

// Turn is the context with which a turn begins. Fields that stay empty are
// unknown to its hooks; Now is filled in by the engine's clock.
type Turn = Context

// Session is the context with which a session begins: SessionID and what else
// is known of it.
type Session = Context
