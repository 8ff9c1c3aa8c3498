// Package toolset is what a model sees of the memory plugin's five tools: their
// definitions, how their arguments are read, and how their answers are written.
//
// It is pure: what a call does is the plugin's. It makes sure of two things. Arguments
// are what the JSON Schemas say, because they are text that a model made up; a mistake
// is an error whose text is for the model. And no answer is longer than [MaxAnswer]
// characters: where it would be, there are fewer items in it and not half of its JSON.
//
// # Forgetting by query
//
// A first call of memory_forget with a query forgets nothing: it answers with what
// matches and a confirmation. A second call with the same query and that confirmation
// forgets. The confirmation is a fingerprint of the workspace and of the ids that were
// shown ([Confirmation]); the second call looks again, and forgets if the same ids
// match. So nothing is forgotten that was not shown, and nobody has to keep what was
// asked: it works after a restart, on another machine, and until something that matches
// changes. It is no secret, and needs to be none: who may call the tool may also name
// ids.
//
// Where to start: [Definitions]; the arguments are in arguments.go, the answers in
// answers.go.
//
// Stability: experimental.
package toolset
