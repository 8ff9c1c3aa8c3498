package treestore

// The queries that look for the document in effect.
const (
	ForThread = forThread
	ForFolder = forFolder
)

// DeletePiece is how many folders and threads one transaction deletes.
const DeletePiece = deletePiece

// MaxMove is how many folders may lie below one that is moved.
const MaxMove = maxMove
