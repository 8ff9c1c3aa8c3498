package treestore

// The queries that look for the document in effect.
const (
	ForThread = forThread
	ForFolder = forFolder
)

// DeletePiece is how many folders and threads one transaction deletes.
const DeletePiece = deletePiece
