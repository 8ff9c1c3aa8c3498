package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// openPage opens the gateway's page in a browser, logged in. It prints the address too, in case there is no browser here.
func (a *app) openPage(ctx context.Context, g *gateway.Gateway, s *serving) {
	address := s.doors.url() + "/"
	if s.doors.tcp.IP.IsUnspecified() { // no browser can call it by that
		address = fmt.Sprintf("http://localhost:%d/", s.doors.tcp.Port)
	}
	if name := pageToken(s.access.tokens); name != "" {
		address += "#login=" + g.LoginCode(name)
	}
	reportf(a.err, "grapnel: the page, for one login within a minute: %s\n", address)
	if err := browse(ctx, address); err != nil {
		reportf(a.err, "grapnel: no browser could be started (%v): open the address yourself\n", err)
	}
}

// pageToken is the token that the page is logged in as: the one with the most rights, of those for every workspace if
// there are any. It is empty without tokens.
func pageToken(tokens []rpc.Token) string {
	weight := func(t rpc.Token) int {
		if slices.Contains(t.Workspaces, rpc.EveryWorkspace) {
			return len(t.Rights) + len(rpc.Rights())
		}
		return len(t.Rights)
	}
	name, most := "", -1
	for _, t := range tokens {
		if n := weight(t); n > most {
			name, most = t.Name, n
		}
	}
	return name
}

// browse starts the user's browser: $BROWSER, or what the system opens addresses with.
func browse(ctx context.Context, address string) error {
	command := []string{os.Getenv("BROWSER")}
	switch {
	case command[0] != "":
	case goruntime.GOOS == "darwin":
		command = []string{"open"}
	case goruntime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		command = []string{"xdg-open"}
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), command[0], append(command[1:], address)...) //nolint:gosec // the user's own browser
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release() // it lives as long as it likes
}
