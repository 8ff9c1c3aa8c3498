// Package bridge puts Grapnel behind agents that people run: it maps their hook events to phases, and the decisions of
// plugins to the answers that each agent accepts.
//
// [Decode] reads the payload of a host's event, [Bridge.Handle] runs its phases on an engine, and [Encode] writes the
// host's own answer. Decoders and encoders are pure, one file a host, and name the contract that they were
// written from. An encoder writes only fields that the host's schema has and the answer needs: on some hosts an
// answer with one unknown field is a failed hook, and the tool runs.
//
// Stability: experimental.
package bridge
