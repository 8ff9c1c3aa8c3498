package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
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

// reach finds the gateway and connects to it. A gateway that has a note proves that
// it is that one before it gets the token.
func (f *reachFlags) reach(ctx context.Context) (*reached, error) {
	target, n, err := f.target()
	if err != nil {
		return nil, err
	}
	token, err := f.token(n)
	if err != nil {
		return nil, err
	}
	o := client.Options{Token: token}
	if n != nil {
		o.Prove = n.prove
	}
	if token != "" && o.Prove == nil && inTheClear(target) {
		return nil, usagef("--url %s: everybody on the way could read the token; use https://, or a tunnel to this machine (ssh -L)", target)
	}
	c, err := client.Dial(ctx, target, o)
	r := &reached{c, target}
	if err != nil {
		return nil, r.failed(err)
	}
	return r, nil
}

// token is the secret to be let in with: the one that was given, else the one that
// the gateway made.
func (f *reachFlags) token(n *note) (string, error) {
	file := f.tokenFile
	if file == "" {
		if token := os.Getenv(tokenVariable); token != "" || n == nil || n.SecretFile == "" {
			return token, nil
		}
		file = n.SecretFile
	}
	token, err := readSecret(file)
	if err != nil {
		return "", usagef("the token: %w", err)
	}
	return token, nil
}

// inTheClear reports whether what is sent to a target leaves this machine unencrypted.
func inTheClear(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "ws") && !isThisMachine(u.Hostname())
}

// target is where the gateway is, and its note, if it is one of this user's that runs
// on this machine.
func (f *reachFlags) target() (target string, n *note, err error) {
	switch {
	case f.url != "" && f.socket != "":
		return "", nil, usagef("--url and --socket name two gateways; give one of them")
	case f.socket != "":
		target = unixScheme + f.socket
	case f.url != "":
		if u, err := url.Parse(f.url); err != nil || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "" {
			return "", nil, usagef("--url %q: use http://HOST:PORT, as serve prints it", f.url)
		}
		target = f.url
	}
	list, err := readNotes()
	switch {
	case err != nil && target != "":
		return target, nil, nil // there is no place for notes
	case err != nil:
		return "", nil, unable(err)
	case target != "":
		n, err = noteAt(list, target)
		return target, n, err
	}
	n, err = onlyNote(list)
	if err != nil {
		return "", nil, err
	}
	return n.target(), n, nil
}

// noteAt finds the note of the gateway at a target; nil if it has none. An address of
// a gateway that was killed may be another program's by now: a socket proves whose it
// is by itself, a port does not.
func noteAt(list []note, target string) (*note, error) {
	var ended *note
	for i := range list {
		switch n := &list[i]; {
		case !n.at(target):
		case n.lives():
			return n, nil
		default:
			ended = n
		}
	}
	if ended != nil && !strings.HasPrefix(target, unixScheme) {
		return nil, unable(fmt.Errorf("the gateway at %s (process %d) was killed, and what answers there now is not known; start one with: grapnel serve; or remove %s if another one is meant",
			target, ended.PID, ended.path))
	}
	return nil, nil //nolint:nilnil // a gateway without a note
}

// onlyNote finds the only gateway of this user's that runs here.
func onlyNote(list []note) (*note, error) {
	var running []*note
	var targets []string
	for i := range list {
		if n := &list[i]; n.lives() {
			running, targets = append(running, n), append(targets, n.target())
		}
	}
	switch {
	case len(running) == 1:
		return running[0], nil
	case len(running) > 1:
		return nil, usagef("%d gateways run here; choose one with --url or --socket: %s", len(running), strings.Join(targets, ", "))
	case len(list) > 0:
		n := &list[len(list)-1]
		return nil, unable(fmt.Errorf("no gateway runs here: the one of %s (process %d) at %s has ended without removing it; start one with: grapnel serve",
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
		return refused(fmt.Errorf("the gateway at %s: %w; tokens come from --token-file, $%s, or the file that serve names when it starts", r.target, err, tokenVariable))
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
