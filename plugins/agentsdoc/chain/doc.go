// Package chain finds the AGENTS.md files that apply to a working folder and
// makes one bounded text of them.
//
// It is the pure core of the AGENTS.md plugin. [Resolve] is a function of a
// view of a file system, a working folder and [Options], and gives a [Chain]:
// an ordered list of sources, farthest first. [Render] is a function of a chain
// and a [Budget], and gives a [Rendering]: the text, what became of each
// source, and why. Both leave a [Diagnostic] for each decision against a file,
// neither ever fails, and neither uses a clock, a goroutine or a logger.
//
// It is not a hook: it knows nothing of phases or sessions, and it keeps no state
// between calls.
//
// Where to start: [Resolve] in resolve.go reads top-down (survey.go finds the
// root, visit.go takes a folder's file, load.go decides what a link may lead to,
// fill.go makes text of it); [Render] in render.go follows the numbered steps of
// the allocation in allocate.go, and [RenderForHost] beside it gives what a
// prompt will have. Around it: package fsview is what it may do to a file system,
// option what may be chosen, textrule the rules for text, and settings makes
// options of a configuration.
//
// # Presets
//
// A preset is a set of options. "default" is Grapnel's own way; "codex" and
// "codelia" give byte for byte what the users of those tools are used to: which
// names and markers count, what an empty override does, how the text is joined,
// framed and cut. No code asks for a preset's name. In all of them only regular
// files inside of the tree are read, nothing blocks, and a file that cannot be
// read is left out with a diagnostic.
//
// What follows is LayoutDelimited, which is default's; the layouts of the other
// two are in list.go.
//
// # The text
//
// The text is a header, then the sources in chain order. A source is one
// delimiter line, its body, and, where the body was cut, one marker line:
//
//	[source: "PATH", scope SCOPE, kept K of N bytes]
//	BODY
//	[truncated: PATH, kept K of N bytes]
//
// A source that got no room may be one omission line at its place in the chain,
// or all of them together one line before the first source:
//
//	[omitted: PATH, N bytes, budget exhausted]
//	[omitted: N files, budget exhausted]
//
// A source of a root that is not trusted is a line that names it, too:
//
//	[omitted: PATH, N bytes, untrusted root]
//
// PATH is relative to the root, with slashes; the global file is ~. It is
// printed by rules that leave no character in it which could end a line, a
// quotation or a bracket, or hide: see [PrintPath]. SCOPE is one of the [Scope]
// values. N is the size of the file on disk and K counts how many of those
// bytes the body stands for; a body that is whole has K = N. Each line, the
// last of a body too, ends in LF.
//
// # Escaping
//
// A body cannot forge any of these lines, the tags of the section's frame, or
// the boundary of the compiled prompt:
//
//   - "[source:", "[truncated:" or "[omitted:" at the beginning of a line, behind zero
//     or more backslashes, gets one more backslash before it. A line begins behind what
//     indents, quotes, lists or emphasises it, too.
//   - In "<", zero or more backslashes, and then AGENTS_MD or /AGENTS_MD, or
//     !-- grapnel:dynamic, one more backslash follows the "<".
//
// Sequences are compared as a careless reader takes them (package lenient): in any case,
// with blanks and line breaks around a tag's name, in the letters and signs of other
// scripts that look alike, as HTML entities, and with characters between that do not show.
// What may follow the sequence is not looked at.
//
// To read the text back: split it at its lines; a line that begins with one of
// the three words is ours; in all others remove one backslash where the rules
// above find a sequence with at least one. A cut never falls inside such a
// sequence, so this gives exactly what was kept of the source's text.
//
// # Text of a source
//
// One byte order mark is dropped, CRLF and a lone CR become LF, and each
// maximal piece of invalid UTF-8 becomes U+FFFD, as does a NUL, which no prompt
// can carry. Newlines at the end of the text are not part of the body.
//
// Stability: experimental.
package chain
