package proc

import "context"

// Swept is what SweepLeftovers removed.
type Swept struct {
	// Processes were killed: they bore the tag or the mark of a host that is dead.
	Processes int
	// Folders were removed: no living host had locked them.
	Folders int
	// Groups are control groups that were removed with all that lived in them.
	Groups int
}

// SweepLeftovers removes what hosts that were killed have left behind: control
// groups below the one that was delegated to this process, descendants of
// plugins that outlived them, and private folders in runtimeDir ("" is where
// Start makes them by default). Call it when a host begins. It touches nothing
// of hosts that live, and is harmless if several do it at once.
func SweepLeftovers(ctx context.Context, runtimeDir string) Swept {
	// The processes first: what they hold locked is theirs to the end.
	return Swept{Groups: sweepGroups(ctx, ""), Processes: sweepProcesses(ctx), Folders: sweepFolders(ctx, runtimeDir)}
}
