// Package plan turns what plugins propose and what the operator decided into an ordered, checked plan: for each phase
// the stages, the layers of a stage, and the effective fields of every subscription. It is pure, and the order of the
// plugins does not matter.
//
// # From proposal to subscription
//
// A plugin proposes hooks; the operator's overrides have the last word on each field; defaults fill the rest. A
// proposed timeout above the phase's time is lowered, an operator's is a mistake. A subscription that is disabled or
// whose kinds are not all granted is [Off] and stays in the plan for the ledger.
//
// What the configuration declares is expected, whether it runs or not. Of a plugin that has not described itself those
// subscriptions are expected that a phase requires or whose override states the phase. In each other phase in which it is
// granted decisions or rewrites, a subscription "PLUGIN.any:PHASE" stands for its hooks, and fails closed.
//
// # Order
//
// The stages are transform, contribute, validate, observe. after and before divide a stage into as few layers as
// possible. Inside a layer the order is priority (descending), plugin name, subscription id. Dependencies order also
// through a subscription that is off.
//
// [Build] finds all mistakes; each [Problem] says in whose configuration and at which field it lies. [View] is a plan
// in the JSON of the command line.
//
// Stability: internal.
package plan
