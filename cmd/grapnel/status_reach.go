package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// tokenVariable names the environment's token. There is no flag for it: everybody
// on a machine can read the command lines of its processes.
const tokenVariable = "GRAPNEL_TOKEN" //nolint:gosec // a name, no token

// reachFlags say which gateway is meant, and by what token.
type reachFlags struct {
	url, socket, tokenFile string
}

// register adds the flags to a command that calls a gateway.
func (f *reachFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.url, "url", "", "`URL` of the gateway (default: the one of yours that runs on this machine)")
	flags.StringVar(&f.socket, "socket", "", "unix socket of the gateway (`PATH`)")
	flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token itself (default $"+tokenVariable+", or the one that serve made)")
}

// reached is a gateway that can be called.
type reached struct {
	*client.Client

	// target is where it is, in the form that serve prints.
	target string
}

// reach finds the gateway and connects to it.
func (f *reachFlags) reach(ctx context.Context) (*reached, error) {
	target, secretFile, err := f.target(ctx)
	if err != nil {
		return nil, err
	}
	token := os.Getenv(tokenVariable)
	if f.tokenFile != "" {
		secretFile, token = f.tokenFile, ""
	}
	if token == "" && secretFile != "" {
		if token, err = readSecret(secretFile); err != nil {
			return nil, usagef("the token: %w", err)
		}
	}
	c, err := client.Dial(ctx, target, client.Options{Token: token})
	r := &reached{c, target}
	if err != nil {
		return nil, r.failed(err)
	}
	return r, nil
}

// target is where the gateway is, and where its token is if it was found by its
// note.
func (f *reachFlags) target(ctx context.Context) (target, secretFile string, err error) {
	switch {
	case f.url != "" && f.socket != "":
		return "", "", usagef("--url and --socket name two gateways; give one of them")
	case f.socket != "":
		return unixScheme + f.socket, "", nil
	case f.url == "":
		n, err := findNote(ctx)
		if err != nil {
			return "", "", err
		}
		return n.target(), n.SecretFile, nil
	}
	for _, scheme := range []string{"http://", "https://", "ws://", "wss://"} {
		if strings.HasPrefix(f.url, scheme) {
			return f.url, "", nil
		}
	}
	return "", "", usagef("--url %q: use http://HOST:PORT, as serve prints it", f.url)
}

// findNote finds the only gateway of this user's that runs here.
func findNote(ctx context.Context) (*note, error) {
	list, err := readNotes()
	if err != nil {
		return nil, unable(err)
	}
	var running []*note
	for i := range list {
		if list[i].answers(ctx) {
			running = append(running, &list[i])
		}
	}
	switch {
	case len(running) == 1:
		return running[0], nil
	case len(running) > 1:
		var targets []string
		for _, n := range running {
			targets = append(targets, n.target())
		}
		return nil, usagef("%d gateways run here; choose one with --url or --socket: %s", len(running), strings.Join(targets, ", "))
	case len(list) > 0:
		n := &list[len(list)-1]
		return nil, unable(fmt.Errorf("no gateway runs here: the one that %s speaks of (process %d) does not answer at %s any more; start one with: grapnel serve",
			n.path, n.PID, n.target()))
	default:
		return nil, unable(errors.New("no gateway of yours runs on this machine; start one with: grapnel serve, or name one with --url"))
	}
}

// failed gives an error of a call its exit code, and says what to do about it.
func (r *reached) failed(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	case errors.Is(err, context.DeadlineExceeded):
		return unable(fmt.Errorf("the gateway at %s takes calls and does not answer: it hangs, or its database does; look at its log, or start it again", r.target))
	case client.HasCode(err, rpc.CodeUnauthorized):
		return refused(fmt.Errorf("the gateway at %s: %w; tokens come from --token-file or $%s", r.target, err, tokenVariable))
	case client.HasCode(err, rpc.CodeNotFound):
		return refused(fmt.Errorf("the gateway at %s: %w", r.target, err))
	case client.HasCode(err, rpc.CodeInvalid):
		return usagef("the gateway at %s: %w", r.target, err)
	default:
		return unable(fmt.Errorf("the gateway at %s: %w", r.target, oneLine{err}))
	}
}

// askTime bounds a call that starts plugins.
const askTime = 2 * time.Minute

// ask makes one call of a running gateway, within askTime, and says where that is.
func (f *reachFlags) ask(ctx context.Context, method string, params, result any) (target string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("no answer within %s", askTime))
	defer cancel()
	r, err := f.reach(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // everything was answered
	if err := r.Call(ctx, method, params, result); err != nil {
		return "", r.failed(err)
	}
	return r.target, nil
}
