// Package section writes the text of the prompt's section memory_recall.
//
// It is a pure function of what was recalled, what the turn's policy allows and the
// room that there is: [Write]. Memories are words of people, and some of people who
// mean no good, so what goes between the tags is escaped: see [Escape].
//
// It is not the recall, which is package recall's, and it knows nothing of hooks.
//
// # What is written
//
// An introduction and the tag <MEMORIES>, one line for each memory, a line about those
// that are not shown, and the closing tag. A memory is never broken over lines and its
// line begins with scope and category, so that no memory can look like two, like the
// line about the others, or like what stands around the section.
//
// # Escaping
//
// What does not show is dropped, but for the joiners and selectors that scripts and
// pictures need, and what ends a line is a blank. A backslash goes behind each "<" that
// could begin a tag or a control word of a model's chat format, and behind each "[" that
// begins such a word or a marker of Grapnel's ("[truncated:", "[INST]"), in any case
// and with blanks or what does not show between the letters.
//
// Stability: experimental.
package section
