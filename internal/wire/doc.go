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
// Frames go over gRPC's stream or, where plugin and host agree, over a lane (lane.go): a pair of sockets that the
// plugin has inherited. There the caller that waits is the host's reader (lane_host.go), and the plugin's reader runs
// the handler unless that takes long (lane_plugin.go). Everything else is the same; the writer sends by a carrier.
//
// The stdio binding has neither gRPC nor a handshake: frames are JSON, one a line (lines.go), on the program's standard
// input and output. The host's side of it is a lane with lines for frames ([OpenLines]); the plugin's side a stream
// ([ServeLines]). Between lines and the bytes of frames translates jsonform.go, by a table that is made from the contract.
//
// A [form] function names the fields of a message once, for both directions, so that no direction can miss a field; it
// takes less than half the time of protobuf's generated code, which tests compare with. Those of the types of package
// phases are generated (forms_generated.go, by TestForms), the others stand in message_*.go.
//
// Stability: internal. The contract in proto/ only grows.
package wire
