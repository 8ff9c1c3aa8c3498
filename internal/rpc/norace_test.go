//go:build !race

package rpc

// raced says that the race detector watches, which costs memory.
const raced = false
