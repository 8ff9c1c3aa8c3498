// Package replay sends what was recorded of plugins to them again, without the host
// and the model that they had, and compares the answers.
//
// [Read] sorts a record into parts, each of one plugin under one configuration. The
// caller starts an engine with that plugin, whose host calls the part's [Host]
// answers from the record, and [Part.Play] makes the calls, one after another in the
// recorded order. It knows neither files nor flags, and starts nothing itself.
//
// # What is compared
//
// The answers as they came, before anything was checked, merged or cut: as canonical
// JSON, so that the order of members does not matter, while the order of
// contributions does. Of an error its code and the plugin's own word count; messages
// hold numbers of processes and times. Times are shown and never compared. Where the
// recorded caller had gone before an answer came, there is nothing to compare with.
//
// # What a plugin must do its part for
//
// The same answer twice needs the same question: the recorded clock and ids are sent
// again, but a plugin that looks at its own clock, at files, or into a database of its
// own, answers by what is there now.
//
// Stability: internal.
package replay
