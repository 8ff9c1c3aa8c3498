//go:build !linux

package proc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
)

// family knows nothing here: without a table of processes only the process group is killed.
type family struct{ ending atomic.Bool }

func newFamily(int, string) *family           { return &family{} }
func tagProcess(int, string)                  {}
func (*family) note()                         {}
func (*family) kill(context.Context) int      { return 0 }
func (*family) orphans() int                  { return 0 }
func hostIdentity() string                    { return identity(os.Getpid(), 0, "?") }
func sweepProcesses(context.Context) int      { return 0 }
func sweepGroups(context.Context, string) int { return 0 }

// awaitEnd calls last after the reaping. Signalling the group is still right: its number is taken while members live.
func awaitEnd(p *os.Process, last func()) *os.ProcessState {
	state, err := p.Wait()
	last()
	if err != nil {
		return nil
	}
	return state
}

func (*cage) spawn(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(path, argv, attr)
}

func (*cage) release(int, int) error { return nil }

// checkListener wants mutual TLS for TCP: this system does not say who listens.
func (p *Process) checkListener(h handshake) error {
	if h.network == "tcp" && !p.spec.MutualTLS {
		return p.foreign(h, "a TCP address, and this system does not say whose it is; set tls: true")
	}
	return nil
}

func (*Process) checkPeer(context.Context, net.Conn, handshake) error { return nil }

// removeTree retries with the modes of directories changed, without following links out of the directory.
func removeTree(_ context.Context, _ *os.File, path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	root, openErr := os.OpenRoot(path)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer closeQuietly(root)
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = root.Chmod(name, 0o700)
		}
		return err
	})
	return os.RemoveAll(path)
}

func unlockDir(base, name string) error {
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer closeQuietly(root)
	return root.Chmod(name, 0o700)
}

// measure knows nothing on this system.
func measure(families []*family, _ []int64) ([]Usage, bool) {
	return make([]Usage, len(families)), false
}

func canExecHandle() bool { return false }

// withoutStrays adds nothing: this system does not list open descriptors.
func withoutStrays(files []*os.File) []*os.File { return files }
func onMainThread() bool                        { return false }
func threadID() int                             { return 0 }
func limitCore(int)                             {}
func oomKills() int                             { return 0 }
func ownPeak() int64                            { return 0 }
func peakOf(*os.ProcessState) int64             { return 0 }
