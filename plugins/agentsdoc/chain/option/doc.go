// Package option holds what may be chosen about a chain of instruction files, and
// the presets: sets of choices that give what the users of some tool are used to.
//
// It is data and a few predicates. What a choice does is package chain's; how
// one is made in a configuration or an environment, package settings'.
//
// Where to start: [Set], then [ForPreset].
//
// Stability: experimental.
package option
