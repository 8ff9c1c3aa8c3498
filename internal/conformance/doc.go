// Package conformance says whether a plugin keeps the wire contract (docs/WIRE.md), whatever its language and binding.
//
// [Run] starts the program once for each check and speaks the protocol frame by frame, through wire.RawPeer: a host's
// session would drop what it did not ask for, and that is what the checks are about. No check knows the plugin. Inputs of
// hooks are made up from the phases that the plugin describes, and its tools are never called by their names.
//
//   - conformance.go has the options, the report and the run.
//   - host.go is one started plugin; it notes every frame.
//   - checks.go lists the checks; the other files have their code by subject.
//   - report.go and known.go are the forms of a report, and lists of ids.
//
// Stability: internal; package plugintest is the way in.
package conformance
