package manifest

// FileOfHost is the status of a file that the host gives the model by itself.
const FileOfHost = "host"

// HostEvent is something that a host reported about itself: what it loaded, changed or refused, or who started a call.
type HostEvent struct {
	// Event is the host's name of the event.
	Event string `json:"event"`
	// CallID is the host's id of the call that it is about; absent without one.
	CallID string `json:"call_id,omitempty"`
	// Refused is why the host was told not to do it; absent where it was only recorded.
	Refused string `json:"refused,omitempty"`
	// Facts are what the host said of it, in its own words.
	Facts []HostFact `json:"facts"`
}

// HostFact is a name and a value.
type HostFact struct {
	// Name is the host's own name for the value.
	Name string `json:"name"`
	// Value is the host's text, or one that somebody else wrote, such as the name of a skill.
	Value string `json:"value"`
}
