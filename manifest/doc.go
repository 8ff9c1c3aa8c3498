// Package manifest is the PromptManifest: the record of what went into one prompt, who contributed it, what was cut
// or omitted and why, with hashes. It is metadata only: titles, labels, messages and paths are its only text
// from users and plugins, and [HashLabels] replaces those too.
//
// [Manifest] is the type; [Schema] is its JSON Schema. The compiler fills in what it knows, the runtime adds the
// ledger, and [Seal] closes the record. [Canonical] gives the bytes that are stored and hashed, [Parse] reads them
// back, [Validate] checks a record by itself, and a [Verifier] checks stored ones.
//
// There are four kinds of hashes:
//
//   - [Fingerprint] of a text: XXH64, or with a key HMAC-SHA-256. It is a short name for people and caches, and
//     without a key others can make a text to it. Nothing is decided, compared or proven by it.
//   - [Hash] of a text, a definition or a contribution: SHA-256, or with a key HMAC-SHA-256, so that nobody can guess
//     a short text from it.
//   - [ContentHash]: SHA-256 over what two runs of the same work have in common.
//   - The record's own hash: SHA-256, or HMAC-SHA-256 with the operator's key, over
//     the whole record with the previous record's hash in it. Without a key it proves
//     order and content only up to a hash that somebody kept.
//
// The package does no I/O. Ids, times and keys come from the caller.
//
// Stability: experimental until 1.0. The JSON only grows within one [SchemaVersion].
package manifest
