// Package gateway lets many clients, in any language, work with one Grapnel: with the thread
// tree and its AGENTS.md documents, with turns, and with the log of manifests.
//
//   - [New] joins a tree, an engine and a log; [Gateway.Serve] listens.
//   - The methods are rows in methods_*.go and status.go: name, right, description, function.
//   - [Documents] is the same tree for plugins: the host service "documents".
//   - [Schema] describes all methods, notifications and errors.
//
// Package internal/rpc carries the messages; package internal/tree has the words and rules. This package
// checks workspaces and actors, chooses the errors that clients see, and notifies them.
//
// # Notifications
//
// The hub reads the tree's log of changes, whoever made them, and notifies the connections that
// watch a workspace in the order of the log; several changes of one item may come as one, the
// last. Each notification has a seq: a client that watches again from there misses nothing. If
// that cannot be guaranteed, gap is true, and the client must read again.
//
// # Kept turns
//
// Turns that clients began are kept in memory until the client ends them, they are idle for
// too long, or the gateway stops. Handles of ended turns are remembered for a while, so that a
// late call gets the reason. Nothing else is stored.
//
// Stability: experimental until 1.0.
package gateway
