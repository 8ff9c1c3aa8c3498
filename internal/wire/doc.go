// Package wire is the session protocol between a host and a plugin process (proto/grapnel/plugin/v1/plugin.proto), with
// the encoding of every value of package phases. It owns gRPC, starts no processes and applies no policy. A host calls
// [Open] and gets a [Session]; a plugin calls [Register] with a [Handler], such as an *sdk.Plugin.
//
//	caller ── writer ──▶ gRPC ──▶ reader ── worker: decode, handle, encode
//	   ▲                                        │
//	   └── reader ◀── gRPC ◀── writer ──────────┘
//
// Readers decode envelopes only: they never run a handler, wait for a slot, or block on a queue. What a reader answers
// by itself goes in front of the write queue, or ends the session when even that is full. Callers and workers decode
// bodies, from bytes (see codec), so that a bad body fails its call and not the stream.
//
// Messages are encoded by hand: a [form] function names the fields of a message once, for both directions. That takes
// less than half the time of the generated code (which tests compare with), and no direction can miss a field.
//
// Stability: internal. The contract in proto/ only grows.
package wire
