package phases

import "encoding/json"

// The bounds of the host service "model", in bytes.
const (
	// MaxCompletionInput bounds System, Input and Schema together.
	MaxCompletionInput = 64 << 10
	// MaxCompletionOutput bounds the Text of an answer.
	MaxCompletionOutput = 256 << 10
)

// CompletionRequest is what a plugin asks a model through its host: the
// parameters of the method "complete" of the host service "model". Which model
// answers is the host's choice.
type CompletionRequest struct {
	// System are the instructions; empty for none.
	System string `json:"system,omitempty"`
	// Input is the text that the model works on. It must be there.
	Input string `json:"input"`
	// Schema is the JSON Schema of the answer; nil wants plain text. Hosts pass it
	// to providers that take one. The engine makes sure that the answer is JSON,
	// and not that it fits: check it.
	Schema json.RawMessage `json:"schema,omitempty"`
	// SchemaName names the schema for the provider: letters, digits, _ and -, at
	// most 64. Empty leaves it to the host.
	SchemaName string `json:"schema_name,omitempty"`
	// MaxOutputTokens bounds the answer; 0 leaves it to the host. What is left of
	// the plugin's budget is the most in any case, and what a host's function gets
	// is never 0.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Purpose is a word or two for the host's records and its choice of a model,
	// such as "classify".
	Purpose string `json:"purpose,omitempty"`
}

// CompletionResponse is a model's answer to a [CompletionRequest].
type CompletionResponse struct {
	// Text is the answer; JSON where the request has a schema.
	Text string `json:"text"`
	// Model names the model that answered; empty if the host does not say.
	Model string `json:"model"`
	// Usage is what the provider reported. Zero is not known.
	Usage Usage `json:"usage,omitzero"`
	// Stopped says why the answer ended; empty counts as StoppedEnd.
	Stopped Stop `json:"stopped"`
}

// Stop is why a model's answer ended.
type Stop string

// The ends of an answer.
const (
	// StoppedEnd: the model was done.
	StoppedEnd Stop = "end"
	// StoppedLength: it had no more tokens; the text is cut off.
	StoppedLength Stop = "length"
	// StoppedRefusal: the model, or the provider's filter, refused.
	StoppedRefusal Stop = "refusal"
	// StoppedOther is any other end; the text may be a part.
	StoppedOther Stop = "other"
)

// Stops lists the ends of an answer.
func Stops() []Stop { return []Stop{StoppedEnd, StoppedLength, StoppedRefusal, StoppedOther} }
