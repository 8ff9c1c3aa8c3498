package proc

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Swept is what SweepLeftovers removed.
type Swept struct {
	Processes   int // Processes were killed: they had the tag or mark of a dead host
	Directories int // Directories were removed: no living host had locked them
	Groups      int // control groups that were removed, with their members killed
}

// SweepLeftovers removes what killed hosts have left: control groups, descendants of plugins, and private
// directories in runtimeDir ("" is Start's default). Call it when a host begins. It touches nothing of living
// hosts; several hosts may call it at once.
func SweepLeftovers(ctx context.Context, runtimeDir string) Swept {
	// Processes first: they hold locks on directories.
	return Swept{Groups: sweepGroups(ctx, ""), Processes: sweepProcesses(ctx), Directories: SweepDirectories(ctx, runtimeDir)}
}

// newMark returns the environment value by which a plugin's descendants are found: the host, so that others can (as
// package sdk/serve does) tell who it is and whether it lives, and a random part.
func newMark(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", phases.Errorf(phases.CauseInternal, "no random bytes for a plugin's mark: %w", err)
	}
	return hostIdentity() + "/" + hex.EncodeToString(b[:]), nil
}

func hostOf(mark string) (string, bool) {
	host, random, ok := strings.Cut(mark, "/")
	return host, ok && len(random) == 32
}

// identity names a host: its process number, its start time, and the namespace of the number.
func identity(pid int, start uint64, namespace string) string {
	return fmt.Sprintf("%d.%d.%s", pid, start, namespace)
}

func parseIdentity(s string) (pid int, start uint64, namespace string, ok bool) {
	_, err := fmt.Sscanf(s, "%d.%d.%s", &pid, &start, &namespace)
	return pid, start, namespace, err == nil && identity(pid, start, namespace) == s
}
