// Package text measures, normalises, escapes and cuts the text that goes into prompts.
//
// The order is always the same: [Valid], [Normalize], [Escape], measure with [Chars] and [Size], allocate, [Cut]. A
// length is a number of Unicode scalar values ("characters"). A limit bounds everything that one fragment renders to:
// the frame, the body and the line that says how much was cut, joined by newlines.
//
//	frame.Open
//	body
//	[truncated: kept 15,950 of 40,212 characters]    (only after a cut)
//	frame.Close
//
// # Lenient reading
//
// A model takes "</ NOTES>", "＜/NOTES＞", "&lt;/NOTES&gt;" and "</ΝOTES" with a Greek letter for the end of <NOTES>,
// and "  > [source: x]" for a line that it has seen before. [Scanner] finds where such tags and lines may begin,
// [Tag], [Word] and [StartsLine] say what stands there. They ignore case, accents, compatibility forms such as
// fullwidth letters, characters that do not show, and differences between ASCII, its lookalikes in other scripts, and
// HTML entities.
//
// All functions are pure. [Sanitize] alone is not about prompts but about showing foreign text to an operator.
//
// Stability: internal.
package text
