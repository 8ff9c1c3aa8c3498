package rpc

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// childEnv makes the test binary a server, so that a test can measure a process
// that has nothing but the server's ends of the connections.
const childEnv = "GRAPNEL_RPC_CHILD"

// childMain serves until its standard input ends. It prints its address.
func childMain() {
	if err := serveChild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveChild() error {
	var mu sync.Mutex
	var conns []*Conn
	srv, err := New(Options{
		Methods: []Method{
			Typed("child/watch", NoRight, "Tells this connection what is said.", func(_ context.Context, c *Caller, _ none) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				conns = append(conns, c.Conn)
				return len(conns), nil
			}),
			Typed("child/say", NoRight, "Says something to all that watch.", func(_ context.Context, _ *Caller, p echoed) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				for _, c := range conns {
					c.Notify("", "test/said", p)
				}
				return len(conns), nil
			}),
			Typed("child/rss", NoRight, "Returns the process's memory in KiB, after a collection.", func(context.Context, *Caller, none) (int, error) {
				debug.FreeOSMemory()
				return residentKiB()
			}),
		},
	})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return srv.Serve(ctx, srv.Handler(), l)
}

// residentKiB is how much memory of the process is in RAM.
func residentKiB() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	rest, _, _ = strings.Cut(rest, "kB")
	return strconv.Atoi(strings.TrimSpace(rest))
}

// startChild starts a server in a process of its own.
func startChild(t testing.TB) *harness {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the child: %v", err)
		}
	})
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		t.Fatal(err)
	}
	return &harness{addr: addr}
}
