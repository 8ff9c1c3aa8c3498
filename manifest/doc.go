// Package manifest is the PromptManifest: the record of what went into one
// prompt, from whom, what was cut or left out and why, with fingerprints.
//
// A manifest is metadata only. Titles, labels, messages and paths are the only
// text of users and plugins in it, and [HashLabels] replaces those too.
//
// # Where to start
//
//   - [Manifest] is the type; its fields are the groups of the record and its
//     JSON is published as a JSON Schema by [Schema].
//   - The compiler fills what it knows, the runtime adds the ledger, and [Seal]
//     closes the record: its place in the chain and its hashes.
//   - [Canonical] gives the bytes that are stored and hashed, [Parse] reads them
//     back, [Validate] says whether a record makes sense by itself.
//
// # Three kinds of hashes
//
//   - Fingerprints ([Fingerprint]) of text: XXH64, fast, and not secret. With a
//     key they are HMAC-SHA-256, so that nobody can guess a short text from its
//     fingerprint.
//   - [ContentHash]: SHA-256 over what two runs of the same work have in common,
//     to ask whether two prompts were made alike. See there for what counts.
//   - The record's own hash: SHA-256, or HMAC-SHA-256 with the operator's key,
//     over the whole canonical record with the previous record's hash in it.
//     Plain SHA-256 proves order and content only up to a head that somebody
//     kept.
//
// # What it is not
//
// It does no I/O, knows no store and no clock, and prints nothing for people.
// Ids, times and keys come from the caller.
//
// Stability: experimental until 1.0. The JSON only grows within one
// [SchemaVersion].
package manifest
