// Package lenient reads text as a careless reader does, for those who put text of
// strangers between tags or lines of their own.
//
// A model takes "</ NOTES>", "＜/NOTES＞", "&lt;/NOTES&gt;" and "</ΝOTES" with a Greek
// letter for the end of <NOTES>, and "  > [source: x]" for a line that it has seen
// before. Who escapes only the exact bytes keeps out nobody. This package finds what
// reads alike; where the backslash goes is up to the caller.
//
// What is read alike: letters of either case; compatibility forms such as fullwidth and
// mathematical letters; letters with accents; the letters and signs of other scripts that
// look like ASCII; HTML entities of all these. Characters that do not show are passed
// over. It knows no words, tags or lines of its own.
//
// Where to start: [Scanner] finds the places, [Tag] and [Word] say what stands there,
// [StartsLine] whether it begins a line.
//
// Stability: experimental.
package lenient
