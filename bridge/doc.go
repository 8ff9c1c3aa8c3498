// Package bridge puts Grapnel behind agents that people run: it maps the events of their hooks to phases, and what
// plugins decide to the answers that each agent takes.
//
// The way of an event: [Decode] reads the payload of a host, [Bridge.Handle] runs its phases on an engine, and the host's
// own encoder writes the answer. Decoders and encoders are pure, one file a host, and name the contract that they were
// written from. An encoder writes no field that the host's schema lacks, and none that is not needed: on some hosts an
// answer with one unknown field is a failed hook, and the tool runs.
//
// Stability: experimental.
package bridge
