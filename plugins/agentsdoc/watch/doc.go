// Package watch tells when what was looked at in a file system may be another
// by now.
//
// It has two halves. A [Trace] stands in the place of a view of a file system
// and notes each name that is looked up in each folder, found or not: this is a
// [Seen], which can be looked at again ([Seen.Changed]), name by name. A
// [Watcher] does without looking: it asks the system to tell of changes in the
// folders of a Seen, and calls back for those names alone.
// Links are followed to where they lead: what lies on their way belongs to what is
// watched.
//
// It is not a resolver and reads no file: it knows nothing of instruction files
// but the names that were looked up. Where the system cannot tell of changes,
// because of a limit or because another machine owns the files, Watch says so,
// and the caller looks again by itself.
//
// # Goroutines
//
// A Watcher owns two while it watches anything: its own, which collects events
// and calls back, and the one of the library below it. Both have ended when
// Close returns, or when the last thing that was watched is forgotten. Nothing
// else here starts any.
//
// Where to start: [NewTrace], then [New] and [Watcher.Watch].
//
// Stability: internal to the plugin; experimental.
package watch
