// Package wire is the way between a host and a plugin process: the session
// protocol of proto/grapnel/plugin/v1/plugin.proto, and the form of every value
// of package phases on it. It owns the generated code and gRPC; nobody else
// imports either.
//
// It does not start processes (package proc does), does not know what a hook is
// for, and applies no policy: budgets, retries, grants and merging are the
// runtime's.
//
// # Where to start
//
//   - Host: [Open] on a connection made with [DialOptions] gives a [Session].
//   - Plugin: [Register] on a server made with [ServerOptions] serves a
//     [Handler]; *sdk.Plugin is one by shape.
//
// # How a call goes
//
// Dispatch makes an entry in the table of calls, writes the frame with a form
// and gives it to the writer. The plugin's reader finds the id, notes the call
// and passes the frame to a worker; that decodes it, runs the handler, and sends
// the result. The host's reader looks the id up and hands the frame to the
// caller, who decodes it.
//
//	caller ── writer ──▶ gRPC ──▶ reader ── worker: decode, handle, encode
//	   ▲                                        │
//	   └── reader ◀── gRPC ◀── writer ──────────┘
//
// Readers do as little as possible: they never run a handler, wait for a slot,
// or block on a queue. What a reader has to answer by itself goes in front of
// the write queue, or ends the session when even that is full.
//
// # Why values are encoded by hand
//
// The contract is fully typed protobuf, and the generated code is what tests
// compare with. The product does not use it for messages: a [form] function
// names the fields of a message once, for both directions, and reads straight
// into the types of package phases. It takes less than half the time of the
// generated code before that has converted anything, and a field cannot be
// forgotten in one direction. gRPC gets and gives bytes (see codec), so that a bad body fails
// its call instead of the stream.
//
// # Limits that are not ours
//
// A frame above the limit ends the stream, inside gRPC, before anybody sees it.
// Whose answer it was is told by the tap, from the first bytes on the
// connection. That takes a connection made with [DialOptions] and a plugin that
// writes the id first, as protobuf libraries do. Otherwise, if just one call was
// pending, it was that one; if several were, all of them get session_reset.
//
// A frame that is no protobuf message at all is counted; the call that it was
// for fails if its id can be read or if it is the only one pending, and
// otherwise waits for its deadline.
//
// Stability: internal. The contract in proto/ only grows.
package wire
