// Package lazy delivers the instruction files of folders that a session comes to
// after its beginning.
//
// The files between the root and the working folder are in the first prompt.
// Whatever lies elsewhere in the tree waits until a tool touches a path there:
// then [State.Touch] answers with the files that apply to that path and that the
// session has not been given, and with the reminder that tells the model. It
// also tells what differs from what the session began with: [State.Changed] in
// the middle of it, [State.Move] when it goes on elsewhere, and [State.Resume] when
// it is taken up again. What a host reads for the model by itself counts as
// delivered, too: [State.Read].
//
// All are functions of a [State], options and what a view of the file system
// shows: there is no clock, goroutine or logger, nothing is kept between calls
// but in the state, and no call fails. The state is a plain value; [Encode] makes
// JSON of it that fits beside others into 64 KiB, and [Decode] takes that back.
// A State has no lock of its own: two tool calls of one session at once need
// one around them, or the same file is delivered twice.
//
// It is not a hook, and it does not decide when the model is told: who calls it
// delivers what it returns. Where that may fail, keep a [State.Clone] to go back
// to.
//
// # Rules
//
//   - A folder counts as itself, a file by its folder, and a path with nothing
//     there by its nearest folder that exists.
//   - A file is delivered once for each content in an epoch, by its real path and
//     the hash of its bytes, or of its text with what that imports (in the
//     codelia preset by its time, too). That a folder is covered never keeps a
//     file from being looked at: new files and changed ones are found in folders
//     that were touched before.
//   - One event has at most so many files as the options say, those nearest to
//     what was touched. The others wait in the queue for the next event, whatever
//     it touches, and are dropped when they are gone or the epoch ends.
//   - With bodies, one file has at most so many bytes and the event, too, the
//     nearest file first. What is cut says so, and a file without room is named,
//     to be read by the model.
//   - Outside of the root there is no answer. A nested repository inherits nothing
//     from the folders above it. Folders that tools fill (node_modules, vendor,
//     third_party, .venv, target) or git ignores are not looked at, unless the
//     working folder is in them. Patterns are read from files inside of the root
//     only.
//   - A link to a folder inside of the root is followed; one that leaves it ends
//     the way above it.
//
// Where to start: [Begin] and [State.Touch] in touch.go; walk.go has the
// boundaries, body.go the texts, diff.go what differs.
//
// Stability: experimental.
package lazy
