//go:build !linux

package proc

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"time"
)

// checkPeer waits until a plugin's unix socket is there. Who listens on it is
// not asked on this system, which [Missing] says.
func (p *Process) checkPeer(ctx context.Context, addr string) (dial string, release func(), err error) {
	release = func() {}
	for !strings.HasPrefix(addr, "@") {
		if info, err := os.Stat(addr); err == nil && info.Mode()&fs.ModeSocket != 0 {
			break
		}
		select {
		case <-ctx.Done():
			return "", release, errGaveUp
		case <-time.After(socketPoll):
		}
	}
	p.setWaiting("nothing answers on its socket", "unix "+clean(addr, noiseShown))
	return addr, release, nil
}
