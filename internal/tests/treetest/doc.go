// Package treetest compares, by random calls, what keeps or serves thread trees with a model that is obviously right: SQLite
// and PostgreSQL, the gateway's client, and a gateway that is killed.
//
// Stability: internal.
package treetest
