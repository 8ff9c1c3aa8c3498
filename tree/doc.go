// Package tree is the vocabulary of the thread tree: workspaces, the folders and
// threads in them, and the AGENTS.md documents that people keep at a workspace's
// root and at its folders. A thread is told what the nearest document above it
// says.
//
// It holds types and rules, and nothing that touches a database, a network or a
// clock. [Store] is what keeps a tree; package store/treestore has the one on SQL
// databases, and package tree/treetest a model in memory and the suite that both
// pass. The gateway's methods take and give these types as they are: their JSON
// is the wire's.
//
// # Rules
//
//   - A scope is a workspace's root or a folder. It has at most one live document.
//   - A live document is a draft while its text is blank, else active. Only active
//     ones are effective; a draft does not hide what is inherited.
//   - Each change of a document is a version, counted from 1 without gaps, and a
//     [Revision]. Archiving and restoring are versions too.
//   - Who saves says which version the text is based on. Where that is not the
//     newest, nothing is saved and the [Error] carries a [Conflict].
//   - Folders and threads are ordered by nothing but their ids; several may have
//     the same name.
//
// Stability: experimental until 1.0.
package tree
