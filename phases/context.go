package phases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"strings"
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

// Name is the actor as records name it: KIND:ID, such as user:ada, or what is known of that.
func (a Actor) Name() string {
	if a.Kind == "" || a.ID == "" {
		return a.Kind + a.ID
	}
	return a.Kind + ":" + a.ID
}

// Context says where and when a phase is dispatched; turns and sessions begin with one. Empty fields are unknown.
type Context struct {
	WorkspaceID string `json:"workspace_id,omitempty"`
	ThreadID    string `json:"thread_id,omitempty"`
	// ConversationThreadID is the thread whose instructions and memory apply, for a
	// sub-task that of its conversation. Empty means ThreadID; see Conversation.
	ConversationThreadID string `json:"conversation_thread_id,omitempty"`
	TurnID               string `json:"turn_id,omitempty"`
	TaskID               string `json:"task_id,omitempty"`
	AgentID              string `json:"agent_id,omitempty"`
	SessionID            string `json:"session_id,omitempty"`
	ParentSessionID      string `json:"parent_session_id,omitempty"`
	// Epoch counts compactions, clears and reloads of the session, from 0. Within a turn it rises with turn.post_compaction.
	Epoch   int     `json:"epoch,omitempty"`
	Mode    Mode    `json:"mode,omitempty"`
	Profile Profile `json:"profile,omitempty"`
	Actor   Actor   `json:"actor,omitzero"`
	// Now is the turn's clock. Hooks use it instead of their own.
	Now time.Time `json:"now,omitzero"`
	// Dir is the working directory, an absolute path.
	Dir string `json:"dir,omitempty"`
	// DirRoot is the directory that reading for Dir must not leave, neither upwards nor
	// by a link; both are then real paths. Empty means that Dir is not bounded.
	DirRoot string `json:"dir_root,omitempty"`
	// Flags are the host's switches; a missing one is false.
	Flags map[string]bool `json:"flags,omitempty"`
	// Metadata is the host's own data, JSON by name; it needs the grant see: metadata.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// AgentFlag with the name of a bridge behind it, as in "agent/codex", is the flag of turns behind that agent's hooks. The
// model keeps in its conversation what such a turn is given.
const AgentFlag = "agent/"

// Agent returns the agent behind whose hooks a turn runs; empty for none.
func (c Context) Agent() string {
	for name, on := range c.Flags {
		if agent, ok := strings.CutPrefix(name, AgentFlag); ok && on {
			return agent
		}
	}
	return ""
}

// Conversation returns the effective conversation thread.
func (c Context) Conversation() string {
	return cmp.Or(c.ConversationThreadID, c.ThreadID)
}

// Clone returns a copy that shares no mutable memory with c.
func (c Context) Clone() Context {
	c.Flags = maps.Clone(c.Flags)
	c.Metadata = maps.Clone(c.Metadata)
	for k, v := range c.Metadata {
		c.Metadata[k] = bytes.Clone(v)
	}
	return c
}

const (
	maxPathBytes      = 4096     // of Dir and DirRoot
	maxContextBytes   = 64 << 10 // of Flags and Metadata together
	contextEntryBytes = 64       // what an entry counts beside its name and value
)

// CheckContext bounds a context, which engines, gateways and logs keep: an id or word
// has at most [MaxIDBytes], a path 4 KiB, flags and metadata together 64 KiB. The code
// is [CauseOversizeRequest]; the message begins with the field's JSON name.
func CheckContext(c *Context) *Error {
	for _, id := range [...]struct{ field, value string }{
		{"workspace_id", c.WorkspaceID},
		{"thread_id", c.ThreadID},
		{"conversation_thread_id", c.ConversationThreadID},
		{"turn_id", c.TurnID},
		{"task_id", c.TaskID},
		{"agent_id", c.AgentID},
		{"session_id", c.SessionID},
		{"parent_session_id", c.ParentSessionID},
		{"mode", string(c.Mode)},
		{"profile", string(c.Profile)},
		{"actor.kind", c.Actor.Kind},
		{"actor.id", c.Actor.ID},
	} {
		if err := CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	return cmp.Or(checkLength("dir", c.Dir, maxPathBytes), checkLength("dir_root", c.DirRoot, maxPathBytes), checkEntries(c))
}

// CheckID bounds an id, or a name that is kept beside ids, by [MaxIDBytes].
func CheckID(field, id string) *Error { return checkLength(field, id, MaxIDBytes) }

func checkLength(field, s string, most int) *Error {
	if len(s) <= most {
		return nil
	}
	return Errorf(CauseOversizeRequest, "%s: it has %d bytes, and may have %d", field, len(s), most)
}

func checkEntries(c *Context) *Error {
	size := (len(c.Flags) + len(c.Metadata)) * contextEntryBytes
	for name := range c.Flags {
		size += len(name)
	}
	for name, value := range c.Metadata {
		size += len(name) + len(value)
	}
	if size <= maxContextBytes {
		return nil
	}
	return Errorf(CauseOversizeRequest, "metadata: with flags it has %d bytes, %d of them for each entry, and may have %d", size, contextEntryBytes, maxContextBytes)
}
