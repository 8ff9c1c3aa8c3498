// Package home reads and prepares the runtime home: the folder in which an
// assistant keeps who it is. It is the small source loader in front of the
// compiler, which knows no disk.
//
// Three files are looked for, in this order:
//
//	SOUL.md      what the assistant cares about and how it behaves
//	IDENTITY.md  who it is and what it is for
//	USER.md      what it knows about the person it works for; optional
//
// # Where to start
//
// [Load] reads them, once a turn, so that an edit shows in the next one. It never
// fails and never waits: whatever lies in the home becomes a row and a
// diagnostic. [Seed] writes the first two where they are absent, and never
// touches what is there.
//
// # What it is not
//
// It does not cut texts to the prompt's limits: the compiler does, at one place,
// and says in the manifest how much of each file it kept. It does not escape
// them either. It knows no project: files of a source tree are a plugin's
// business. And no text is compiled in that would stand for a file which is
// missing; the texts of Seed are only ever written to disk.
//
// Stability: experimental until 1.0.
package home
