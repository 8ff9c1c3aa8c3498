// Package thread is what the AGENTS.md plugin knows of the thread tree: how the
// document in effect for a thread is asked for, and what becomes of it in a
// prompt.
//
// Documents of the tree are kept by a gateway, at the root of a workspace and at
// folders of threads, and only the gateway touches their database. [Ask] gets the
// one for a thread through the host service "documents"; the JSON of its answer is
// decoded here, by types of this package, because a plugin knows nothing of a
// gateway. [Render] is a function of a document and a limit, and gives the text
// between the tags of a section.
//
// It is not a hook, and keeps nothing: a document is asked for in each turn, so
// that the next turn after a save has the new text.
//
// # The text
//
//	PREAMBLE
//
//	<AGENTS_MD>
//	BODY
//	[truncated: thread document, kept K of N characters]
//	</AGENTS_MD>
//
// The marker line stands only where the body was cut; K and N count characters of
// the document. The body is escaped by the rules of package chain: it can forge
// neither the marker, nor the lines around files, nor the tags, nor the boundary
// between the parts of a prompt. It has no newlines at its end. Preamble and tags
// are the section's frame, which survives every cut.
//
// Where to start: [Ask], then [Render].
//
// Stability: experimental.
package thread
