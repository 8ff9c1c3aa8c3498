package manifest

import (
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// HostTool is one tool of the host's own.
type HostTool struct {
	// Name is the name that the model calls.
	Name string `json:"name"`
	// Hash is the SHA-256 of its definition; empty where the host gave only the name.
	Hash string `json:"hash"`
	// Owner is who brought it, as for sections of an observed request; absent from others.
	Owner string `json:"owner,omitempty"`
	// Chars is the length of its definition in Unicode scalar values; absent where that is not known.
	Chars int `json:"chars,omitempty"`
}

// History is what the host said about the conversation behind the prompt.
type History struct {
	// Entries is how many messages are sent.
	Entries int `json:"entries"`
	// Hash is that of all of them in order.
	Hash string `json:"hash"`
	// Cut is how many were left out; absent if none.
	Cut int `json:"cut,omitempty"`
	// Summarized is how many a summary stands for; absent if none.
	Summarized int `json:"summarized,omitempty"`
	// Repaired is how many were changed so that the provider accepts them; absent if none.
	Repaired int `json:"repaired,omitempty"`
	// Previous is the record of the thread's previous observed request, and Same how many messages this one begins with that it
	// had; both absent where that is not known.
	Previous string `json:"previous,omitempty"`
	Same     int    `json:"same,omitempty"`
	// Cached is how many messages an observed request asks the provider to keep.
	Cached int `json:"cached,omitempty"`
	// Added are the parts of an observed request's messages behind those, in order, without those that a changed message still
	// begins with; absent without any.
	Added []MessagePart `json:"added,omitempty"`
}

// MessagePart is one part of a message: a text, a call, a result.
type MessagePart struct {
	// Message is the message's place in the conversation, from 0.
	Message int `json:"message"`
	// Role is the message's role, in the provider's words.
	Role string `json:"role"`
	// Kind says what it is: the agent's word for a text that it put there, or else the provider's, such as tool_result.
	Kind string `json:"kind"`
	// ID is that of a call, or the agent's name for what it put there; absent without one.
	ID string `json:"id,omitempty"`
	// Owner is who wrote it, as for sections of an observed request.
	Owner string `json:"owner"`
	// Chars is its length in Unicode scalar values.
	Chars int `json:"chars"`
	// Hash is the SHA-256 of its text.
	Hash string `json:"hash"`
}

// RequestTexts are the hashes of what an observed request has besides sections: definitions of tools and parts of messages.
func (m *Manifest) RequestTexts() (hashes []string) {
	if m.Observed == "" {
		return nil
	}
	for i := range m.HostTools {
		hashes = append(hashes, m.HostTools[i].Hash)
	}
	if m.History != nil {
		for i := range m.History.Added {
			hashes = append(hashes, m.History.Added[i].Hash)
		}
	}
	return hashes
}

// Reminder is one reminder that was handed to the host.
type Reminder struct {
	// Type says what kind of reminder it is.
	Type string `json:"type"`
	// Owner is the subscription that it is from.
	Owner string `json:"owner"`
	// ContributionID is that of the contribution.
	ContributionID string `json:"contribution_id"`
	// Fingerprint is that of its text.
	Fingerprint string `json:"fingerprint"`
	// Hash is the SHA-256 of its text.
	Hash string `json:"hash"`
	// Chars is the length of its text in Unicode scalar values.
	Chars int `json:"chars"`
	// With is the phase whose answer carried it; absent from one that came with the prompt.
	With phases.Phase `json:"with,omitempty"`
}

// Call is one dispatch that was decided, or that rewrote its input, or a step of a tool call: it was judged
// (tool.pre_call), a plugin was called (tool.call), or the host has said how its own tool ended (tool.post_call). Where
// inputs are kept, a turn's prompt (turn.pre_policy) and the results of plugins' tools are calls, too.
type Call struct {
	// Phase is the phase that was dispatched.
	Phase phases.Phase `json:"phase"`
	// CallID is the host's id of the tool call; absent from other dispatches.
	CallID string `json:"call_id,omitempty"`
	// Tool is the name of the tool; absent from other dispatches.
	Tool string `json:"tool,omitempty"`
	// Owner answers the tool: a plugin, "host" or "builtin"; absent from other dispatches, and where nobody has that tool.
	Owner string `json:"owner,omitempty"`
	// Came is the hash of the input as the host gave it, as canonical JSON.
	Came string `json:"came"`
	// Went is the hash of the input after all rewrites.
	Went string `json:"went"`
	// Verdict is the decision; absent where no hook decided.
	Verdict phases.Verdict `json:"verdict,omitempty"`
	// State is the outcome of the call: succeeded, or how the call or its check failed; absent while there is none.
	State phases.RunState `json:"state,omitempty"`
	// Code is why the call was refused or failed: forbidden, tool_error, or the code that the host reported; absent on success.
	Code string `json:"code,omitempty"`
	// DecidedBy are the subscriptions behind the verdict, in order; absent without one.
	DecidedBy []Decider `json:"decided_by,omitempty"`
	// RewrittenBy are the subscriptions whose rewrites were applied, in order; absent without any.
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	// Facts are words for what was known of the call as it went, sorted: hosts, outside, secrets, unparsed, writes; absent
	// where none applies, and where no hook needed facts.
	Facts []string `json:"facts,omitempty"`
	// FactsHash is the hash of the facts, as canonical JSON; absent where no hook needed them.
	FactsHash string `json:"facts_hash,omitempty"`
	// Input is what it takes to dispatch it again; absent where manifest.keep_inputs is off.
	Input *CallInput `json:"input,omitempty"`
}

// CallInput is what is known of a dispatch whose input is kept. Its texts are kept like those of sections, by their hashes:
// the input itself, a result as it went, and those named here.
type CallInput struct {
	// At is when it was dispatched, in UTC.
	At time.Time `json:"at"`
	// Place is the hash of its [Place] as canonical JSON.
	Place string `json:"place"`
	// Arguments is the hash of the arguments whose result it is; absent from others than results.
	Arguments string `json:"arguments,omitempty"`
	// Chars is the length of a result in Unicode scalar values, of which plugins see the beginning; absent from others.
	Chars int `json:"chars,omitempty"`
	// Omitted is how many bytes of its texts are not kept, because the record had no room for them or the result was
	// withheld; absent if none.
	Omitted int `json:"omitted,omitempty"`
}

// Place is where a dispatch was made, as far as the record does not say. It is a text, so that it can be erased.
type Place struct {
	// AgentID is the host's id of the agent; absent without one.
	AgentID string `json:"agent_id,omitempty"`
	// Dir is the working directory; absent if it is unknown.
	Dir string `json:"dir,omitempty"`
	// Host is the agent behind whose hooks it was made; absent for other hosts.
	Host string `json:"host,omitempty"`
	// ParentSessionID is the session of which this one is a task; absent without one.
	ParentSessionID string `json:"parent_session_id,omitempty"`
	// Paths are the files and directories that the call is about; absent without any.
	Paths []string `json:"paths,omitempty"`
}

// TextHashes returns the hashes of the texts that are kept of a call: all of them, unless some were omitted. It returns
// nil where inputs are not kept.
func (c *Call) TextHashes() []string {
	if c.Input == nil {
		return nil
	}
	hashes := []string{c.Went, c.Input.Place}
	if c.FactsHash != "" {
		hashes = append(hashes, c.FactsHash)
	}
	if c.Input.Arguments != "" {
		return append(hashes, c.Input.Arguments)
	}
	return append(hashes, c.Came)
}

// Decider is one hook's part in a decision.
type Decider struct {
	// Subscription is the full id of the hook.
	Subscription string `json:"subscription"`
	// Verdict is what it decided.
	Verdict phases.Verdict `json:"verdict"`
	// ReasonCode is the plugin's own word for the reason; absent without one.
	ReasonCode string `json:"reason_code,omitempty"`
	// ContributionID is the plugin's own id of the decision, such as the file, line and name of a rule; absent without one.
	ContributionID string `json:"contribution_id,omitempty"`
	// Shadow says that it decided nothing: it would have decided so.
	Shadow bool `json:"shadow,omitempty"`
}

// Erasure says which texts were taken out of the log.
type Erasure struct {
	// By is who asked for it.
	By string `json:"by"`
	// Reason is why.
	Reason string `json:"reason"`
	// At is when, in UTC.
	At time.Time `json:"at"`
	// WorkspaceID narrows it to a workspace; absent if it did not.
	WorkspaceID string `json:"workspace_id,omitempty"`
	// ThreadID narrows it to a thread; absent if it did not.
	ThreadID string `json:"thread_id,omitempty"`
	// Actor narrows it to a person; absent if it did not.
	Actor string `json:"actor,omitempty"`
	// Before narrows it to older records; absent if it did not.
	Before time.Time `json:"before,omitzero"`
	// Records is how many records named one of the texts.
	Records int `json:"records"`
	// Texts is how many texts went.
	Texts int `json:"texts"`
}
