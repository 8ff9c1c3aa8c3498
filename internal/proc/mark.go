package proc

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// newMark returns the text in a plugin's environment by which its descendants
// are found: who the host is, so that other hosts can tell whether it still
// lives, and a random part, so that nothing else can have the same.
func newMark(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", phases.Errorf(phases.CauseInternal, "no random bytes for a plugin's mark: %w", err)
	}
	return hostIdentity() + "/" + hex.EncodeToString(b[:]), nil
}

// hostOf returns the host's identity in a mark.
func hostOf(mark string) (string, bool) {
	host, random, ok := strings.Cut(mark, "/")
	return host, ok && len(random) == 32
}

// identity is the form of a host's identity: its process number, the time at
// which that began, and the namespace in which the number counts.
func identity(pid int, start uint64, namespace string) string {
	return fmt.Sprintf("%d.%d.%s", pid, start, namespace)
}

// parseIdentity is the inverse of identity.
func parseIdentity(s string) (pid int, start uint64, namespace string, ok bool) {
	_, err := fmt.Sscanf(s, "%d.%d.%s", &pid, &start, &namespace)
	return pid, start, namespace, err == nil && identity(pid, start, namespace) == s
}
