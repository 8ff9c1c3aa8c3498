// Package digest turns values into canonical bytes and bytes into hashes.
//
// Canonical means RFC 8785: one JSON text per value, members sorted by their UTF-16 code units, numbers as ECMAScript
// prints them, no blanks. Equal values therefore have equal bytes and equal hashes, on every machine and in every
// language.
//
// Start at [EncoderOf] for Go types and at [JSON] for JSON text. Hashes name their
// algorithm ("xxh64:", "sha256:", "hmac-sha256:"). XXH64 is fast, not secret, and no proof of anything: what
// decides, compares or proves takes [Hash].
//
// What canonical JSON cannot express is an error, never silently repaired: strings that are not UTF-8, NaN and the
// infinities, and in JSON text also duplicate names, lone surrogates, numbers beyond a float64 and nesting deeper
// than [MaxDepth]. Numbers are IEEE doubles (RFC 8785 section 3.2.2.3): an integer beyond 2^53 is rounded to the
// nearest double.
//
// Stability: internal.
package digest
