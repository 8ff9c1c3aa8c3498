// Package plan turns what plugins propose and what the operator decided into
// an ordered, checked plan: for each phase the stages, the layers inside a
// stage, and every field of every subscription as it is in force.
//
// It is a pure function: no goroutine, clock, file or logger, and the same
// plan for the same plugins in whatever order they come. It does not start
// plugins, and it knows nothing of how a plan is carried out.
//
// # From proposal to subscription
//
// A plugin proposes hooks in its description; the operator's overrides have the
// last word on each field; defaults fill what nobody said. What a plugin
// proposes above its phase's time is lowered, what the operator wrote above it
// is a mistake. A subscription whose kinds are not all granted, or which the
// operator disabled, is off: it stays in the plan (as [Off]), so that the
// ledger can show it.
//
// Of a plugin that never described itself only those subscriptions are
// expected that a phase requires or whose override states the phase.
//
// # Order
//
// Stages follow each other: transform, contribute, validate, observe. Inside a
// stage, after and before divide subscriptions into layers, as few as possible,
// and each as early as possible. Inside a layer the order is priority
// (descending), plugin name, subscription id. Dependencies only order, and they
// do so also through a subscription that is off.
//
// # Mistakes
//
// [Build] finds all mistakes, not the first one. Each [Problem] says in whose
// configuration it lies and at which field, so that its caller can show the
// place in a file.
//
// Start at [Build] and [Plan]; [View] is a plan in the JSON of the command line.
//
// Stability: internal.
package plan
