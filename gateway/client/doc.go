// Package client calls a Grapnel gateway: methods over HTTP POST, WebSocket or a
// unix socket, and over the latter two also notifications.
//
// Start at [Dial] and [Client.Call]. [Tree] makes a client a [tree.Store], for
// code that does not care where a tree is. The methods, their params and results
// are those of the gateway's schema (grapnel schema rpc); this package knows only
// those of trees.
//
// It is no connection pool and does not connect again by itself: over HTTP each
// call stands alone; a lost WebSocket connection ends its [Client], and whoever
// watches a workspace dials again and gives since_seq.
//
// # Why this is not jrpc2's client
//
// github.com/creachadair/jrpc2 has one. It hands every message that it reads to a
// goroutine of its own, so that notifications change their order, and a change of
// a document is told twice or not at all if its numbers run backwards. It writes
// under a lock that no context ends. Over HTTP, it cannot give up a call.
//
// Stability: experimental until 1.0.
package client
