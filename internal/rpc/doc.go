// Package rpc carries JSON-RPC 2.0 over HTTP POST, WebSocket and unix sockets. Start at [Options] and [New], then
// [Typed] for methods, [Error] for what they return, and [Conn.Notify] for notifications.
//
// # Who may call
//
// Without tokens: callers on the same machine. With tokens: callers who know one, anywhere. In both cases
// [Server.Guard] checks Host and Origin, so that a page cannot reach the gateway by a name of its own. A method
// requires a [Right].
//
// # Bounds
//
// [Limits] bounds everything. A message is scanned before it is decoded, more strictly than by encoding/json. Memory
// is reserved before it is used: for a message while it is read, for what it decodes to and what its calls are
// expected to answer ([Expect]), and for its answer until it is written. It counts against the process, the token and
// the connection. A call that finds no memory waits and then fails with [CodeOverloaded]; meanwhile clients are
// disconnected that hold that memory and do not read, or send slowly.
//
// A new socket may replace the oldest one without an authenticated request: a flood of them delays no caller with a
// token, and peers of one listener take nothing from another's.
//
// Requests of a batch run in order; messages of one connection run concurrently. A request is cancelled when its
// client goes away.
//
// # Why this is not jrpc2's server
//
// github.com/creachadair/jrpc2, which the tests compare with, does not fit hostile clients: it queues what it reads
// without bound, starts a goroutine for each request, holds a lock while it writes, accepts duplicate members and any
// depth, treats a null id as absent, and cuts calls short when it stops.
//
// Stability: internal.
package rpc
