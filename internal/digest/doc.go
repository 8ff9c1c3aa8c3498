// Package digest turns values into canonical bytes and bytes into hashes.
//
// Canonical means RFC 8785: one JSON text per value, members sorted by their
// UTF-16 code units, numbers as ECMAScript prints them, no blanks. Equal
// values therefore have equal bytes and equal hashes, on every machine and in
// every language.
//
// Start at [EncoderOf] for Go types that are hashed often: it plans a type
// once and then writes canonical bytes without going through encoding/json.
// [JSON] does the same for JSON text of unknown shape. [XXH64], [SHA256],
// [HMACSHA256] and [Hasher] name what was hashed and how in their result
// ("xxh64:", "sha256:", "hmac-sha256:"), so that a stored hash explains itself.
//
// # What canonical JSON cannot say
//
// All of these are errors, never silent repairs: strings that are not UTF-8,
// NaN and the infinities, nesting deeper than [MaxDepth], and in JSON text
// also duplicate member names, lone surrogates (`"\ud800"`) and numbers beyond
// the range of a float64. Numbers are IEEE doubles (RFC 8785 section 3.2.2.3):
// an integer beyond 2^53 is rounded to the nearest double and so loses digits.
// A field that must keep them wears the tag option `string`. Embedded
// json.RawMessage is held to MaxDepth on its own.
//
// # What it is not
//
// It reads nothing, keeps nothing and knows no type of Grapnel's. It is no
// general JSON encoder: whatever it writes, a strict parser reads, but people
// want indentation. XXH64 is fast and not secret; where a hash must not be
// guessed or forged, use a keyed one.
//
// Stability: internal.
package digest
