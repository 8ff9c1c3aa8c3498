package phases

import "cmp"

// Bounds of a context: engines, gateways and logs keep what is in it.
const (
	// MaxPathBytes bounds Dir and DirRoot.
	MaxPathBytes = 4096
	// MaxContextBytes bounds Flags and Metadata together. An entry counts for its name,
	// its value and contextEntryBytes.
	MaxContextBytes   = 64 << 10
	contextEntryBytes = 64
)

// CheckContext refuses a context that takes too much room: an id or a word has at most
// [MaxIDBytes], a path [MaxPathBytes], flags and metadata together [MaxContextBytes].
// The code is [CauseOversizeRequest], and the message begins with the field's JSON
// name. It returns nil for a context that fits.
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
	return cmp.Or(checkLength("dir", c.Dir, MaxPathBytes), checkLength("dir_root", c.DirRoot, MaxPathBytes), checkEntries(c))
}

// CheckID refuses an id of a host, or a name that is kept beside ids, that is longer
// than [MaxIDBytes]. The error is that of [CheckContext].
func CheckID(field, id string) *Error { return checkLength(field, id, MaxIDBytes) }

func checkLength(field, s string, most int) *Error {
	if len(s) <= most {
		return nil
	}
	return Errorf(CauseOversizeRequest, "%s: it has %d bytes, and may have %d", field, len(s), most)
}

// checkEntries bounds what the host adds to a context.
func checkEntries(c *Context) *Error {
	size := (len(c.Flags) + len(c.Metadata)) * contextEntryBytes
	for name := range c.Flags {
		size += len(name)
	}
	for name, value := range c.Metadata {
		size += len(name) + len(value)
	}
	if size <= MaxContextBytes {
		return nil
	}
	return Errorf(CauseOversizeRequest, "metadata: with flags it has %d bytes, %d of them for each entry, and may have %d", size, contextEntryBytes, MaxContextBytes)
}
