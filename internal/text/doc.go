// Package text measures, normalises, escapes and cuts the text that goes into
// prompts.
//
// The order is always the same: [Valid], [Normalize], [Escape], measure with
// [Chars] and [Size], allocate (the caller's business), [Cut]. Each step
// expects what the one before it gives.
//
// A length is a number of Unicode scalar values ("characters"). A limit bounds
// everything that one fragment renders to: its frame, its body and the marker
// line that says how much was cut, with the newlines between them.
//
// # How a fragment is rendered
//
// The parts that are not empty, each beginning a line:
//
//	frame.Open
//	body
//	[truncated: kept 15,950 of 40,212 characters]    (only after a cut)
//	frame.Close
//
// They are joined by one newline, and no newline follows the last. Fragments
// of one section keep their own frames; joining them is not done here.
//
// # What it is not
//
// It does not decide who gets how much, and it does not know sections, plugins
// or files. All functions are pure: the same input gives the same output, and
// none keeps a reference to anything but substrings of its argument. [Sanitize]
// alone is not about prompts but about showing foreign text to an operator.
//
// Stability: internal.
package text
