//go:build !linux

package proc

import (
	"context"
	"os"
	"sync/atomic"
)

// family knows nothing on this system, which has no table of processes and
// their environments to look through; only the process group is killed.
// [Missing] says so.
type family struct{ ending atomic.Bool }

func newFamily(int, string) *family { return &family{} }

func tagProcess(int, string) {}

func (*family) note() {}

func (*family) kill(context.Context) int { return 0 }

func hostIdentity() string { return identity(os.Getpid(), 0, "?") }

func sweepProcesses(context.Context) int { return 0 }

func sweepGroups(context.Context, string) int { return 0 }
