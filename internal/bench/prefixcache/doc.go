// Package prefixcache models the prompt caches of providers, so that it can be
// measured without one how much of a session's prompts would come out of them.
//
//	go test -run FiftyTurns -v ./internal/bench/prefixcache
//
// The rules are those that the providers publish, with the numbers of package
// providers/facts. Requests are read as they go over the wire, in the shape that
// the adapters and the vendors' SDKs give them, so that what is measured is what
// would be sent.
//
// # Where to start
//
// [Marked] is a cache that keeps what a request marks (Anthropic), [Automatic]
// one that finds prefixes by itself (OpenAI). [AnthropicBlocks] and
// [OpenAIBlocks] read requests for them. The session of fifty turns is in this
// package's tests; what it gave stands in docs/PERFORMANCE.md.
//
// # What it is not
//
// It is no promise: providers evict when they like, route requests to machines
// that have not seen the prefix, and count tokens with vocabularies of their own.
// Servers here have room for everything and are one machine.
package prefixcache
