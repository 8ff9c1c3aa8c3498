package itemstore

// View is what a turn, or a person, may see. Every read takes one, and nothing
// outside is ever returned. The zero value sees what belongs to the workspace
// without a name.
type View struct {
	// WorkspaceID is the workspace. Its own items are always in view.
	WorkspaceID string
	// ThreadID, AgentID and UserID add the items of these scopes in the workspace;
	// those that are empty add none.
	ThreadID, AgentID, UserID string
	// UserEverywhere adds the items of the user in all workspaces.
	UserEverywhere bool
	// AllScopes adds all else in the workspace: for a person who looks after it. It does
	// not go with UserEverywhere.
	AllScopes bool
}
