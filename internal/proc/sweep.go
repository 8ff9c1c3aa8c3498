package proc

import (
	"context"
	"time"
)

// Swept is what SweepLeftovers removed.
type Swept struct {
	// Processes were killed: they bore the mark of a host that is dead.
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
// of hosts that live, and is harmless if several do it at once. now is the time,
// against which the age of folders is measured.
func SweepLeftovers(ctx context.Context, runtimeDir string, now time.Time) Swept {
	return Swept{
		Groups: sweepGroups(ctx, ""), Processes: sweepProcesses(ctx), Folders: sweepFolders(ctx, runtimeDir, now),
	}
}
