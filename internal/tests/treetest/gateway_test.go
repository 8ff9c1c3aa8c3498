package treetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	gatewayclient "github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store"
)

func dialTree(t *testing.T, target, token string) tree.Store {
	t.Helper()
	c, err := gatewayclient.Dial(t.Context(), target, gatewayclient.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return gatewayclient.NewTree(c)
}

const (
	killClients = 6
	killSeed    = 9 // with it many calls change something between two kills: what a loss needs
)

// TestKilledGateway plays random calls on a gateway by clients over HTTP and WebSockets,
// while it is killed again and again. It fails if anything that was acknowledged is lost: only
// the call that was under way at a kill may be missing.
func TestKilledGateway(t *testing.T) {
	t.Parallel()

	const steps, every = 250, 40
	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		k := &killed{dsn: dsn, trees: make([]tree.Store, killClients)}
		k.start(t)
		playAtOnce(t, crowdOptions{seed: killSeed, steps: steps / killClients, clients: k.clients(), crash: k.crash, every: every})
		storetest.CheckFolders(t, dsn)
		if k.crashes < steps/killClients*killClients/every {
			t.Errorf("killed %d times", k.crashes)
		}
	})
}

// serveTree is the gateway that is killed: it prints where it listens and serves the tree of a
// database.
func serveTree(ctx context.Context, dsn, _ string) error {
	s, err := store.Open(ctx, dsn, store.Options{LockTimeout: time.Minute})
	if err != nil {
		return err
	}
	trees, err := s.Tree(ctx)
	if err != nil {
		return err
	}
	o := gateway.Options{Tree: trees}
	for n := range killClients { // a token's name is who acts
		name := fmt.Sprintf("client-%d", n)
		o.Tokens = append(o.Tokens, rpc.Token{Name: name, SHA256: tree.Sum(name), Rights: rpc.Rights(), Workspaces: []string{rpc.EveryWorkspace}})
	}
	g, err := gateway.New(o)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%[1]s ws://%[1]s\n", l.Addr())
	return errors.Join(g.Serve(ctx, l), s.Close())
}

// killed is a gateway that is killed and started anew on the same store, and its clients, which
// connect again.
type killed struct {
	dsn     string
	cmd     *exec.Cmd
	crashes int

	mu    sync.Mutex // guards trees
	trees []tree.Store
}

// clients have the trees of their latest connections.
func (k *killed) clients() []client {
	list := make([]client, len(k.trees))
	for n := range list {
		list[n].actor = "client-" + strconv.Itoa(n)
		list[n].store = func() tree.Store {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.trees[n]
		}
	}
	return list
}

func (k *killed) start(t *testing.T) {
	t.Helper()
	k.cmd = storetest.Program(t, "gateway", k.dsn, "")
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := k.cmd
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	targets := strings.Fields(line)
	trees := make([]tree.Store, len(k.trees))
	for n := range trees {
		trees[n] = dialTree(t, targets[n%len(targets)], fmt.Sprintf("client-%d", n))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trees = trees
}

// crash kills the gateway, waits until nothing works for it any more, and starts it.
func (k *killed) crash(t *testing.T) {
	t.Helper()
	k.crashes++
	if err := k.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = k.cmd.Wait() // it was killed
	if strings.HasPrefix(k.dsn, "postgres:") {
		waitForSessions(t, k.dsn)
	}
	k.start(t)
}

// waitForSessions waits until PostgreSQL has noticed that a program was killed: until then it
// may still commit what that one has sent.
func waitForSessions(t *testing.T, dsn string) {
	t.Helper()
	db := storetest.Raw(t, dsn)
	defer db.Close() //nolint:errcheck // nothing was changed
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const others = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
	for sessions := -1; sessions != 0; {
		err := db.QueryRowContext(ctx, others).Scan(&sessions)
		if err == nil && sessions > 0 {
			_, err = db.ExecContext(ctx, "SELECT pg_sleep(0.005)")
		}
		if err != nil {
			t.Fatalf("%d sessions of the killed gateway are left: %v", sessions, err)
		}
	}
}
