// Package prefixcache holds tests that measure, with a model of the prompt caches of
// providers, how much of a session's prompts would come out of them:
//
//	go test -run FiftyTurns -v ./providers/internal/prefixcache
//
// Stability: internal.
package prefixcache
