// Package prompttext prepares text for a prompt: it measures, cuts, escapes and
// frames what a plugin puts into a section.
//
// Text from files, users and other programs may try to look like the lines and tags around it. A plugin that writes
// such text into a section usually takes these steps:
//
//  1. [Clean] makes it valid UTF-8 with LF newlines. [OneLine] and [Name] do so
//     for a text that has to stay on one line, such as an entry of a list or a
//     path.
//  2. [Escaper.Escape] puts a backslash into whatever reads like one of the
//     plugin's own tags or lines.
//  3. [Escaper.Cut], [Line], [Head] or [Prefix] shortens it to a limit.
//  4. [Size] says how many characters of the text budget it will use.
//
// A length is a number of Unicode scalar values ("characters"), as in every limit that a
// host sets. All functions are pure and safe for concurrent use.
//
// The host normalises, escapes and cuts each section again, by the same rules. A plugin
// needs this package only to compose several texts into one section or to report exact
// lengths; it can leave a section with one text and a [phases.Frame] to the host.
//
// Stability: experimental.
package prompttext
