//go:build !unix

package skillset

// nonBlocking is nothing where opening a file never waits.
const nonBlocking = 0
