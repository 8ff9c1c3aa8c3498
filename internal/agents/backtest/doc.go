// Package backtest judges what agents have done by a configuration that was not in force then: it reads their transcripts,
// runs each session's events through a bridge into an engine, and counts what would have been denied, asked or rewritten,
// by which hook and why, and what became of the call instead.
//
// [Find] finds transcripts. [Dry] makes the configuration harmless: its plugins can change and reach nothing. [Run] judges
// files, several at once, and adds up a [Tally], which [Tally.Report] turns into the result. [Kept] keeps the tallies of
// files for the next run. Commands of transcripts are never executed.
//
// Stability: internal.
package backtest
