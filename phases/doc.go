// Package phases is the vocabulary of Grapnel: every word that a host, a
// plugin and the runtime exchange, as plain Go data.
//
// # What is here
//
//   - [Phase] and [Table]: the named points in the life of a session, turn or
//     tool call. A phase is one [Row] and one typed [Input]; nothing else in
//     Grapnel knows phases one by one.
//   - [Context] and the inputs: what a hook receives.
//   - [Contribution] and its kinds: what a hook may answer.
//   - [Description], [Hook], [Override], [Grants]: what a plugin proposes, what
//     the operator changes about it, and what the operator allows.
//   - [Dispatch], [Result], [ToolCall], [ToolResult], [Configuration], [Host]:
//     the calls between runtime and plugin.
//   - [Outcome], [Run], [PluginRow], [Merged]: what a host gets back.
//   - [Cause], [Error], [Diagnostic]: what may go wrong, in stable words.
//   - [ValidateDescription] and [ValidateContribution]: the one place that says
//     whether such data is well formed. Every entry point runs them.
//
// # What is not here
//
// Behaviour: nothing here starts, sends, merges or logs. The package depends on the
// standard library alone, so that runtime, sdk and wire can share its types.
//
// # Conventions
//
// Text is UTF-8 without NUL; lengths are counted in Unicode scalar values ("chars") unless a name says bytes.
// Durations of settings carry a unit in text form ("250ms"); measured times are float64 milliseconds. Values are not
// safe for concurrent modification; those that cross a plugin boundary are copied ([CloneInput],
// [CloneContribution]).
//
// Stability: experimental until 1.0; the wire contract in proto/ only grows.
package phases
