// Package compiler turns sections into a prompt and into what a manifest says about it.
//
// It is pure: the same [Input] gives the same bytes, whatever the order in which hook sections, tools and custom
// sections are listed. Reading files, dispatching hooks and recording are its callers' work. Start at [Compile]; the
// order of sections is the table in internal/engine/sections.
//
// # Two parts
//
// The system prompt has a stable part and a dynamic one, with [Boundary] between them if both have text. The boundary
// is escaped in all texts, so the full text can be split again. A section renders as a level-2 heading, a blank line
// and its text; sections are joined by a blank line. Sections placed as messages stand outside both parts and have no
// heading.
//
// # Budgets
//
// Text of hooks arrives cut. Texts of hosts and files are cut here, each once, by one named limit. See [Limits].
//
// Stability: experimental until 1.0.
package compiler
