package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// hookCheck is the result of hook check.
type hookCheck struct {
	Host  string        `json:"host"`
	OK    bool          `json:"ok"    jsonschema:"the host runs every hook that was called, and the gateway has answered each"`
	Hooks []checkedHook `json:"hooks" jsonschema:"in the order in which they were called"`
	// Uncalled are events whose hooks were not called.
	Uncalled []string `json:"uncalled" jsonschema:"events with a hook that the check cannot make up, and so did not send"`
	// Above warns, and does not count for OK.
	Above []agent.Above `json:"above" jsonschema:"what is installed that can outvote, hide or change what Grapnel's hooks say"`
}

type checkedHook struct {
	Event      string         `json:"event"`
	Scope      agent.Scope    `json:"scope"`
	File       string         `json:"file"`
	Definition string         `json:"definition" jsonschema:"the command or address that was called"`
	Skipped    string         `json:"skipped"    jsonschema:"why the host does not run it; empty if it does"`
	Answered   bool           `json:"answered"   jsonschema:"the gateway has answered; otherwise the failure rule of the installation holds"`
	Effect     install.Effect `json:"effect"     jsonschema:"what the host does: goes_on, blocked, asks, rewrites, context or failed (then it goes on)"`
	Text       string         `json:"text"       jsonschema:"the reason, the text for the model, or what failed"`
	ExitCode   int            `json:"exit_code"`
	MS         float64        `json:"ms"         jsonschema:"how long the host would have waited"`
}

type hookCheckFlags struct {
	Scope string `flag:"scope" suggest:"user|project|local" usage:"{SCOPE}: user, project or local (default: all)"`
}

func (a *app) hookCheck(ctx context.Context, f *hookCheckFlags, args []string) error {
	name := args[0]
	host, err := hookHost(name)
	if err != nil {
		return err
	}
	result := &hookCheck{Host: name, OK: true, Hooks: []checkedHook{}, Uncalled: []string{}, Above: aboveHere(host.Agent)}
	if host.Plugin != "" {
		return a.answer(true, result, func() {
			a.printAbove(name, result.Above)
			a.printf("%s loads a plugin, which only it can call; start it, and see what it sent: grapnel manifest list\n", name)
		})
	}
	found, looked, err := installedHooks(host, agent.Scope(f.Scope))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return refused(fmt.Errorf("no hook of Grapnel's is in %s; see: grapnel install %s", strings.Join(looked, ", "), name))
	}
	dir, err := os.Getwd()
	if err != nil {
		return unable(err)
	}
	session := "hook-check-" + rand.Text()
	for i := range found {
		if found[i].order == 0 {
			if !slices.Contains(result.Uncalled, found[i].Event) {
				result.Uncalled = append(result.Uncalled, found[i].Event)
			}
			continue
		}
		row, err := found[i].check(ctx, host, session, dir)
		if err == nil && len(result.Hooks) == 0 && !row.Answered { // it may have started a gateway that needs longer than a hook waits
			row, err = found[i].check(ctx, host, session, dir)
		}
		if err != nil {
			return unable(err)
		}
		result.OK = result.OK && row.Answered && row.Skipped == "" && row.Effect != install.Failed
		result.Hooks = append(result.Hooks, row)
	}
	return a.answer(result.OK, result, func() { a.printHookCheck(result) })
}

func (a *app) printHookCheck(r *hookCheck) {
	t := newTable("hooks of "+r.Host, "event|scope|effect|by|>ms|text")
	for i := range r.Hooks {
		h := &r.Hooks[i]
		by := "gateway"
		switch {
		case h.Skipped != "":
			by = "skipped"
		case !h.Answered:
			by = "failure rule"
		}
		t.add(h.Event, h.Scope, h.Effect, by, h.MS, clean(strings.Join(strings.Fields(cmp.Or(h.Skipped, h.Text)), " ")))
	}
	a.printTable(t)
	a.printAbove(r.Host, r.Above)
	if r.OK {
		a.println("\nthe agent runs every hook" + words.If(len(r.Uncalled) > 0, " that was called") + ", and the gateway answers")
	} else {
		a.println("\nnot every hook is run, and answered by the gateway")
	}
	if len(r.Uncalled) > 0 {
		a.println("not called, because the check cannot make up these events: " + strings.Join(r.Uncalled, ", "))
	}
}

// foundHook is a hook of ours in one of the host's files.
type foundHook struct {
	install.Definition

	scope   agent.Scope
	path    string
	skipped string
	order   int // 0 for an event that cannot be made up
}

// installedHooks are in the order of a session, behind those whose events cannot be made up.
func installedHooks(h *install.Host, only agent.Scope) (found []foundHook, looked []string, err error) {
	if only != "" {
		if err := hasScope(h, only); err != nil {
			return nil, nil, err
		}
	}
	config := hookConfig(h)
	for _, scope := range h.Scopes() {
		if only != "" && scope != only {
			continue
		}
		places, err := hookPlaces(h, scope)
		if err != nil {
			return nil, nil, err
		}
		file, err := openHookFile(places[0], scope)
		if err != nil {
			return nil, nil, err
		}
		path := file.path
		if slices.Contains(looked, path) {
			continue // the project is the home directory
		}
		looked = append(looked, path)
		parsed, err := h.Parse(file.data)
		if err != nil {
			return nil, nil, file.refused(err)
		}
		for _, d := range parsed.Ours() {
			_, order := h.Synthetic(d.Event, "", "")
			found = append(found, foundHook{d, scope, path, parsed.Skips(&d, path, config), order})
		}
	}
	slices.SortStableFunc(found, func(a, b foundHook) int { return a.order - b.order })
	return found, looked, nil
}

// hookConfig is what the user's configuration of a host says about hooks; a file that cannot be read says nothing.
func hookConfig(h *install.Host) []byte {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(h.ConfigPath(home, os.Getenv))
	if err != nil {
		return nil
	}
	return data
}

// check calls a hook as the host does, and reads what it gives as the host does.
func (f *foundHook) check(ctx context.Context, h *install.Host, session, dir string) (checkedHook, error) {
	payload, _ := h.Synthetic(f.Event, session, dir)
	ctx, cancel := context.WithTimeout(ctx, h.Timeout(&f.Definition))
	defer cancel()
	begun := time.Now()
	var run install.Run
	if f.URL != "" {
		run = postHook(ctx, &f.Definition, payload)
	} else {
		run = runHook(ctx, h, &f.Definition, payload, dir)
	}
	reading := h.Read(&f.Definition, &run)
	return checkedHook{
		Event: f.Event, Scope: f.scope, File: f.path, Definition: f.Call(), Skipped: f.skipped, Answered: run.Answered(),
		Effect: reading.Effect, Text: reading.Text, ExitCode: run.ExitCode, MS: milliseconds(time.Since(begun)),
	}, nil
}

// runHook starts a program: by itself, or through the host's shell.
func runHook(ctx context.Context, h *install.Host, d *install.Definition, payload []byte, dir string) install.Run {
	words := append([]string{d.Command}, d.Args...)
	if d.Args == nil {
		words = append(slices.Clone(h.Install.Shell), cmp.Or(d.Command, d.Bash))
	}
	if name, variable := strings.CutPrefix(words[0], "$"); variable {
		words[0] = cmp.Or(os.Getenv(name), "/bin/sh")
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // what the user has installed
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, os.Environ(), time.Second
	if h.Install.ProjectVariable != "" {
		cmd.Env = append(cmd.Env, h.Install.ProjectVariable+"="+dir)
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), &out, &errs
	err := cmd.Run()
	run := install.Run{Stdout: out.String(), Stderr: errs.String()}
	_, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		run.Failed = "it took too long"
	case err != nil && (!ended || cmd.ProcessState.ExitCode() < 0):
		run.Failed = err.Error()
	default:
		run.ExitCode = cmd.ProcessState.ExitCode()
	}
	return run
}

// postHook calls a server, with the variables in the headers that the definition allows.
func postHook(ctx context.Context, d *install.Definition, payload []byte) install.Run {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(payload))
	if err != nil {
		return install.Run{Failed: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range d.Headers {
		req.Header.Set(name, os.Expand(value, func(variable string) string {
			if !slices.Contains(d.Variables, variable) {
				return ""
			}
			return os.Getenv(variable)
		}))
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return install.Run{Failed: err.Error()}
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostHookAnswer))
	switch {
	case err != nil:
		return install.Run{Failed: err.Error()}
	case resp.StatusCode/100 != 2:
		return install.Run{Failed: resp.Status + ": " + strings.TrimSpace(string(body))}
	case len(bytes.TrimSpace(body)) > 0 && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		return install.Run{Failed: "the answer is not a JSON object"}
	}
	return install.Run{Stdout: string(body)}
}

const mostHookAnswer = 16 << 20
