// Package surface is what the two surfaces of Grapnel have in common: the command
// line and the gateway. A turn's input is written the same way in a file and in a
// call, an answer has the same JSON, and a schema describes both.
//
//   - [TurnInput] is what a host brings to a turn that is compiled.
//   - [ManifestList], [IsManifestID], [Find] and [IsHead] are about kept manifests.
//   - [Schemas] makes JSON Schemas of Go types, with what reflection does not see.
//
// It is not a place for code that merely has two users: only for what users of
// both surfaces see and would call a mistake if it differed. It opens and prints
// nothing.
//
// Stability: internal.
package surface
