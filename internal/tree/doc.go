// Package tree is the vocabulary of the thread tree: workspaces, the folders and threads in them, and the AGENTS.md
// documents of a workspace's root and its folders. The nearest document above a thread is in effect for it.
//
// It has types and rules. [Store] keeps a tree; package store has one in SQL databases. The JSON of the types is the
// gateway's.
//
// # Rules
//
//   - A scope is a workspace's root or a folder. It has at most one live document.
//   - A live document is a draft while its text is blank, else active. Only active ones are
//     effective; a draft does not hide what is inherited.
//   - Each change of a document is a version, counted from 1 without gaps, and a [Revision].
//     Archiving and restoring are versions too.
//   - A save says which version the text is based on. If that is not the newest, nothing is
//     saved and the [Error] carries a [Conflict].
//   - Folders and threads are ordered by their ids; names need not be unique.
package tree
