// Package compiler turns sections into a prompt and into what a manifest says
// about it.
//
// It is a pure function: the same [Input] gives the same bytes, whatever the
// order in which hook sections, tools and custom sections are listed. It knows
// no plugin, clock or disk. Files are read in front of it, hooks are dispatched
// and their text is merged and cut in front of it, and what it says is recorded
// behind it.
//
// # Where to start
//
// [Compile] is the one entry point. The order of sections is one table, in
// table.go: a new row there is a new section. The steps of a compilation are
// the lines of the method run in compile.go.
//
// # Two parts
//
// The system prompt has a stable part and a dynamic one, with [Boundary] between
// them if both have text. No text of a section can contain the boundary: it is
// escaped, here once more for text that should have been escaped before. So
// whoever has the full text can split it again.
//
// A section renders as a level-2 heading with its title, a blank line and its
// text; sections are joined by a blank line. Sections that are placed as
// messages stand outside both parts and have no heading: their frame, if any,
// is all that surrounds them.
//
// # Budgets
//
// Text of hooks arrives cut and is not cut again. The texts that hosts and files
// bring are cut here, each once, by one named limit. See [Limits].
//
// # What it is not
//
// It makes no decision about who may contribute what: that is settled before. It
// does not know providers: their adapters translate a [Prompt].
//
// Stability: experimental until 1.0.
package compiler
