// Package rpc carries JSON-RPC 2.0 over HTTP POST, WebSocket and unix sockets. It
// knows methods as names with functions and schemas, and nothing of what they do:
// package gateway has those, package gateway/client the other end.
//
// Start at [Options] and [New], then [Typed] for methods, [Error] for what they
// return, [Conn.Notify] for what the gateway says by itself, and [Server] for the
// life of it all.
//
// # Who is let in
//
// Without tokens: callers on the own machine. With tokens: those that know one,
// wherever they are. In both cases the Host must be local or configured, so that
// no page reaches the gateway through a name of its own, and the Origin absent,
// the gateway's own or configured. A method asks for a [Right].
//
// # What is bounded
//
// [Limits] has everything: bytes, depth and requests of a message, connections,
// calls a second, messages in flight, waiting notifications, and the time for
// reading, writing, silence and stopping. What arrives is scanned once before it is
// decoded, and the scan is stricter than encoding/json: invalid UTF-8, duplicate
// names, half characters and NULs in strings are errors, where that package repairs
// them in silence or takes the last.
//
// Memory is reserved before it is used. A message counts while it is read, what it
// decodes to and what its calls are expected to answer before they run ([Expect]), and
// its answer until it is written: against the process, the token and the connection
// ([Limits.Memory]). A call that finds no room waits, and is then [CodeOverloaded].
// Meanwhile clients are disconnected that hold what it waits for and do not read, or
// do not go on sending: long messages that arrive have a share of their own.
//
// Sockets of which no request was let in are strangers, with few places on each
// listener and little time. The oldest one goes for a new one: a flood of them delays
// nobody who has a token, and peers of one listener take nothing from another's.
//
// A request in flight ends when its client goes away. Requests of a batch are done
// in their order; messages of one connection side by side. An answer over WebSocket
// keeps its place in a queue of 16 (InFlight); a client that does not read answers
// is not read from either.
//
// # Why this is not jrpc2's server
//
// github.com/creachadair/jrpc2 is the reference that the tests compare with, its
// parser as the oracle of the fuzzed one here and its client as a stranger who
// calls. Its server does not fit what strangers may do to this one: it queues what
// it reads without bound and starts a goroutine for each request; it holds a lock
// while it writes, so that a notification waits for a slow reader; it takes
// duplicate members and texts of any depth; an id that is null counts as none; and
// stopping it cuts calls short. Each of that would have to be undone around it.
//
// Stability: experimental until 1.0.
package rpc
