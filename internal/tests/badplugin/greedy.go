//go:build unix

package badplugin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// fillInChild lets a child in a session of its own do so.
func fillInChild(_ context.Context, p *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	if err := p.startChild(p.Apart("filler")); err != nil { //nolint:contextcheck // it outlives the call
		return nil, err
	}
	select {}
}

// fillUp fills memory until the process holds as many MiB as "until=" says, and
// then says so; it returns what it holds. Without it 1 GiB is the end: a machine must survive its tests.
func (p *Program) fillUp() [][]byte {
	until, err := strconv.Atoi(p.Arg("until"))
	if err != nil {
		until = 1 << 10
	}
	const step = 4 << 20
	var all [][]byte
	for len(all) < until<<20/step && resident() < until<<20 {
		block := bytes.Repeat([]byte{1}, step)
		all = append(all, block)
	}
	_, _ = fmt.Fprintf(p.Stderr, "holds %d MiB in %d blocks\n", resident()>>20, len(all))
	return all
}

// Keep keeps memory from being freed, and does not return.
func Keep(ctx context.Context, all [][]byte) error {
	for {
		pause(context.WithoutCancel(ctx), time.Hour)
		for _, block := range all {
			block[0]++
		}
	}
}

// resident is the resident memory of this process, 0 where the system does not tell.
func resident() int {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// reach tries to get at what the arguments name, and answers with what came of it, a line each.
func reach(ctx context.Context, p *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	var lines []string
	for _, arg := range p.Args {
		what, target, ok := strings.Cut(arg, "=")
		if try := attempts()[what]; ok && try != nil {
			lines = append(lines, what+": "+outcome(try(ctx, target)))
		}
	}
	return sdk.Reply(&phases.PromptSection{SectionID: Section, Content: strings.Join(lines, "\n")})
}

// attempts are what reach can try.
func attempts() map[string]func(ctx context.Context, target string) (string, error) {
	return map[string]func(ctx context.Context, target string) (string, error){
		"read": func(_ context.Context, path string) (string, error) {
			data, err := os.ReadFile(path)
			return string(data), err
		},
		"write": func(_ context.Context, path string) (string, error) {
			return "written", os.WriteFile(path, []byte("written"), 0o600)
		},
		"connect": func(ctx context.Context, addr string) (string, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return "", err
			}
			return "connected", conn.Close()
		},
		"call": callSocket,
		"glob": func(_ context.Context, pattern string) (string, error) {
			paths, err := filepath.Glob(pattern)
			if err != nil || len(paths) == 0 {
				return "", fmt.Errorf("%d files: %w", len(paths), cmp.Or(err, os.ErrNotExist))
			}
			data, err := os.ReadFile(paths[0])
			return string(data), err
		},
		"kill": func(_ context.Context, pid string) (string, error) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				return "", err
			}
			return "may be killed", syscall.Kill(n, 0)
		},
	}
}

// callSocket calls a gateway at its unix socket, without a token.
func callSocket(ctx context.Context, path string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // everything was said
	const call = `{"jsonrpc":"2.0","id":1,"method":"workspace/list"}`
	if _, err := fmt.Fprintf(conn, "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(call), call); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	return strings.TrimSpace(body), err
}

// outcome is what came of an attempt, in one line.
func outcome(result string, err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return result
	case errors.As(err, &number):
		return "refused: " + number.Error()
	}
	return "failed: " + err.Error()
}
