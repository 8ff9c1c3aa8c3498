package treestore

// The queries that look for the document in effect.
const (
	ForThread = forThread
	ForFolder = forFolder
)
