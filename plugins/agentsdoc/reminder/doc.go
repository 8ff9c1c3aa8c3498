// Package reminder writes the reminders of the AGENTS.md plugin: short messages
// that a host puts beside the conversation, as blocks of their own.
//
// There are five types, see [Type]. Each is a pure function of values: nothing
// is looked up, and no state is kept. A [Message] is what they give: the text
// without a tag, as a contribution to the host carries it, and with its tag, as
// the command line prints it and as hosts put it before the model. The tag has
// its one owner here, [Message.Tagged].
//
// It is not a decision of what to tell: that is package lazy's for files, and
// the host's for trimmed output and permissions.
//
// # What names and texts cannot do
//
// A reminder names files and folders whose names anyone can choose, and may hold
// text of files. No such value can end a line, close the tag, open another one,
// or forge a line of package chain's:
//
//   - Paths are printed by the rules of package textrule, [Style] says which.
//   - Other names are printed on one line, without < and >, without characters
//     that do not show, and with at most 512 characters.
//   - Texts of files are escaped as chain does it, and so is the tag: in "<",
//     zero or more backslashes, an optional / and system-reminder, in any case
//     and whatever stands among them that does not show, one more backslash
//     follows the "<". See [Escape].
//
// Where to start: [Style], whose methods are the types about files.
//
// Stability: experimental.
package reminder
