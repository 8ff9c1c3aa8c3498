package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/cli/autostart"
	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/mcpserver"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

type mcpFlags struct {
	reachFlags

	NoStart   bool   `flag:"no-start"  usage:"do not start a gateway when none runs"`
	Workspace string `flag:"workspace" usage:"{ID} of the workspace that calls belong to (default local, which is made)"`
	Thread    string `flag:"thread"    usage:"{ID} of the thread that calls belong to (default mcp)"`
	Dir       string `flag:"dir"       usage:"working {DIR} of the calls (default the current directory, if the gateway may read it)"`
}

// serveMCP is between an agent and a gateway. Standard output belongs to the protocol.
func (a *app) serveMCP(ctx context.Context, f *mcpFlags, _ []string) error {
	if err := a.startGateway(f); err != nil {
		return err
	}
	r, err := f.reach(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // everything was answered
	at := mcpserver.Place{WorkspaceID: f.Workspace, ThreadID: f.Thread, Dir: f.Dir}
	if at.Dir == "" {
		at.Dir, _ = os.Getwd() // without one there is none
	}
	var tools mcpserver.Tools
	err = r.Call(ctx, mcpserver.MethodTools, at, &tools)
	if client.HasCode(err, rpc.CodeInvalid) && at.Dir != f.Dir {
		why := err
		at.Dir = ""
		if err = r.Call(ctx, mcpserver.MethodTools, at, &tools); err == nil {
			reportf(a.err, "grapnel: calls have no working directory: %v\n", why)
		}
	}
	if err != nil {
		return r.failed(err)
	}
	if err := mcpserver.Serve(ctx, mcpserver.New(version, at, r.Call), a.in, a.stdout); err != nil {
		return unable(err)
	}
	return nil
}

// gatewayTime is for a gateway that is started: agents wait 10 seconds and more for a server.
const gatewayTime = 8 * time.Second

// startGateway starts a gateway where hooks would, unless one is named by its address or one runs that is not named.
func (a *app) startGateway(f *mcpFlags) error {
	if f.NoStart || f.URL != "" {
		return nil
	}
	if list, err := readNotes(); err == nil && f.Socket == "" && slices.ContainsFunc(list, func(n note) bool { return n.lives() }) {
		return nil
	}
	from, err := a.configOrigin()
	if err != nil {
		return err
	}
	socket, config, err := hookPlace(from)
	if err != nil {
		return err
	}
	f.Socket = cmp.Or(f.Socket, socket)
	if err := checkSocket(f.Socket); err != nil {
		return err
	}
	conn, err := autostart.Gateway(f.Socket, config, gatewayTime)
	if err != nil {
		return unable(fmt.Errorf("%w; start one yourself: grapnel serve --socket %s", err, f.Socket))
	}
	_ = conn.Close() // nothing was asked
	// It listens before its note says how it proves itself, and where its token is.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(gatewayTime); time.Now().Before(until); <-tick.C {
		if list, err := readNotes(); err != nil || slices.ContainsFunc(list, func(n note) bool { return n.Socket == f.Socket && n.lives() }) {
			break
		}
		if _, err := os.Lstat(f.Socket); err != nil {
			return unable(errors.New("a gateway was started at " + f.Socket + autostart.Why(f.Socket)))
		}
	}
	return nil
}
