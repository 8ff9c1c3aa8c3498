package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// result is what was observed.
type result struct {
	Host    string `json:"host"`
	Version string `json:"version"`
	Way     string `json:"way"`
	Event   string `json:"event,omitempty"`
	Probe   string `json:"probe"`
	// Tool is what ran: nothing, as asked, or rewritten.
	Tool string `json:"tool"`
	// Model is what the model got for its call.
	Model string `json:"model"`
	// Context says with which role the text of the hook reached the model, and whether the secret did.
	Context  string   `json:"context,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
	Requests int      `json:"requests"`
	Exit     int      `json:"exit"`
	Seconds  float64  `json:"seconds"`
	Shown    string   `json:"shown"`
	Last     []item   `json:"last_request,omitempty"`
	_        struct{} // built by name
}

// lab runs agents.
type lab struct {
	bin, cache, work string // of programs of ours, of agents, of runs
	newest           bool   // agents are of the version that the registry has now, not of that which is pinned
	parallel         int    // probes at once
	out              func(*result) error
	outcome          func(*outcome) error
}

const runTime = 3 * time.Minute // for one agent on a busy machine

func (l *lab) runAgent(ctx context.Context, a *agent, matches *regexp.Regexp) error {
	if err := l.get(ctx, a); err != nil {
		return err
	}
	g, err := l.gateway(ctx, a.name)
	if err != nil {
		return err
	}
	defer g.stop() // it is killed
	probes := slices.DeleteFunc(a.probes(), func(p probe) bool { return !matches.MatchString(p.title()) })
	results, errs := make([]*result, len(probes)), make([]error, len(probes))
	slots := make(chan struct{}, l.parallel)
	var running sync.WaitGroup
	for i := range probes {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if results[i], errs[i] = l.probe(ctx, a, &probes[i], i, g); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", probes[i].Name, errs[i])
			}
		})
	}
	running.Wait()
	for _, r := range results {
		if r != nil {
			errs = append(errs, l.out(r))
		}
	}
	return errors.Join(errs...)
}

func (l *lab) gateway(ctx context.Context, name string) (*gateway, error) {
	return startGateway(ctx, l.bin, filepath.Join(l.work, "gateway-"+name), l.work)
}

// probe runs an agent once.
func (l *lab) probe(ctx context.Context, a *agent, p *probe, n int, g *gateway) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	home := filepath.Join(l.work, fmt.Sprintf("%s-%02d", a.name, n))
	dir, err := p.makeFiles(home)
	if err != nil {
		return nil, err
	}
	if p.Kill {
		if g, err = l.gateway(ctx, fmt.Sprintf("%s-%02d", a.name, n)); err != nil {
			return nil, err
		}
		defer g.stop() // it is killed
	}
	hooks, err := l.hooks(a, p, home, g)
	if err != nil {
		return nil, err
	}
	m := newModel(rounds([]call{p.call(filepath.Join(dir, "file.txt"))}))
	defer m.server.Close()
	args, env, err := a.prepare(home, dir, m.server.URL, p, hooks)
	if err != nil {
		return nil, err
	}
	env = slices.Concat(g.env, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GRAPNEL_TOKEN=" + g.token, "TERM=dumb", "NO_COLOR=1"}, env)
	if err := l.installed(ctx, a, p, dir, env, g); err != nil {
		return nil, err
	}
	if p.Install && p.Dead {
		env = append(env, "XDG_RUNTIME_DIR="+home)
	}
	cmd := exec.CommandContext(ctx, a.command[0], slices.Concat(a.command[1:], args)...)
	cmd.Dir, cmd.WaitDelay, cmd.Env = dir, time.Second, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Gemini CLI runs in a child of its own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var shown bytes.Buffer
	cmd.Stdout, cmd.Stderr = &shown, &shown
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if p.Kill {
		if err := killWhenHanging(ctx, g, dir); err != nil {
			return nil, err
		}
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return nil, err
	}
	requests := m.seen()
	if err := errors.Join(os.WriteFile(filepath.Join(home, "output"), shown.Bytes(), 0o600), writeJSON(filepath.Join(home, "requests.json"), requests)); err != nil {
		return nil, err
	}
	r := observe(dir, requests)
	r.Host, r.Version, r.Way, r.Event, r.Probe = a.name, a.version, p.way(), p.Event, p.title()
	r.Exit, r.Seconds, r.Shown = cmd.ProcessState.ExitCode(), time.Since(begun).Seconds(), said(shown.String())
	if p.Preset != "" {
		r.Model, err = l.compareInstructions(ctx, dir, p.Preset, env, requests)
	}
	return r, err
}

// call is what the model calls, once.
func (p *probe) call(file string) call {
	if p.Tool == "" {
		return shell(command(asked))
	}
	return call{p.Tool, cmp.Or(toolArguments(file)[p.Tool], any(map[string]any{}))}
}

// makeFiles makes what the agent finds, and returns the directory to work in.
func (p *probe) makeFiles(home string) (dir string, err error) {
	dir = filepath.Join(home, p.Name) // the plugin of the gateway goes by this name
	switch {
	case p.Preset != "":
		dir, err = writeInstructions(home, p.Preset)
	case p.isCanned():
		dir = filepath.Join(home, "dir")
	}
	return dir, errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "file.txt"), []byte(secret+"\n"), 0o600))
}

// installed has grapnel write what the agent is to have, and take it out again if the probe says so.
func (l *lab) installed(ctx context.Context, a *agent, p *probe, dir string, env []string, g *gateway) error {
	verbs := []string{"install", "uninstall"}
	switch {
	case !p.Install:
		return nil
	case !p.Uninstall:
		verbs = verbs[:1]
	}
	place := filepath.Join(filepath.Dir(dir), ".config", "grapnel")
	if err := errors.Join(os.MkdirAll(place, 0o700), os.Symlink(g.config, filepath.Join(place, "grapnel.yaml"))); err != nil {
		return err
	}
	for _, verb := range verbs {
		cmd := exec.CommandContext(ctx, filepath.Join(l.bin, "grapnel"), verb, a.name) // built here
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("grapnel %s: %w\n%s", verb, err, out)
		}
	}
	return nil
}

// hooks are the definitions of a probe.
func (l *lab) hooks(a *agent, p *probe, home string, g *gateway) ([]hook, error) {
	if p.Install || p.Preset != "" {
		return nil, nil
	}
	socket, url := g.socket, g.url
	if p.Dead {
		socket, url = filepath.Join(home, "hook.sock"), "http://127.0.0.1:9"
	}
	if p.isCanned() {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		file := filepath.Join(home, "canned.json")
		command := []string{self, cannedMode, file}
		if p.Missing {
			command = []string{filepath.Join(home, "no-such-program")}
		}
		return []hook{{event: p.Event, command: command, onFailure: p.OnFailure, orBlock: p.OrBlock}}, writeJSON(file, p.canned)
	}
	var hooks []hook
	for _, event := range []string{"SessionStart", "UserPromptSubmit", preToolUse, postToolUse, "Stop", "SessionEnd"} {
		h := hook{event: event, onFailure: p.OnFailure, orBlock: p.OrBlock, command: []string{filepath.Join(l.bin, "grapnel-hook"), "--socket", socket, "--no-start", a.name, event}}
		switch {
		case p.HTTP && event == "SessionStart": // Claude Code takes no server there
			continue
		case p.HTTP:
			h.url = url + "/hook/" + a.name
		case p.Dead && event == "UserPromptSubmit": // it would be blocked, and no tool called
			continue
		}
		if p.HTTP && p.Dead && event != preToolUse {
			continue
		}
		hooks = append(hooks, h)
	}
	return hooks, nil
}

// killWhenHanging kills the gateway as soon as its plugin hangs.
func killWhenHanging(ctx context.Context, g *gateway, dir string) error {
	for {
		if _, err := os.Stat(filepath.Join(dir, hanging)); err == nil {
			return g.cmd.Process.Kill()
		}
		select {
		case <-ctx.Done():
			return errors.New("the hook was not called")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// observe looks at the markers, and at what reached the model.
func observe(dir string, requests [][]item) *result {
	r := &result{Tool: "did not run", Requests: len(requests)}
	for _, marker := range []string{asked, rewritten} {
		if _, err := os.Stat(filepath.Join(dir, marker)); err == nil {
			r.Tool = "ran as " + marker
		}
	}
	if len(requests) == 0 {
		return r
	}
	r.Last = requests[len(requests)-1]
	var roles []string
	for _, i := range r.Last {
		if i.Result && r.Model == "" {
			r.Model = i.Text
		}
		r.Secret = r.Secret || strings.Contains(i.Text, secret)
		for mark, name := range map[string]string{brought: "", because: "reason: ", redacted: "result: "} {
			if strings.Contains(i.Text, mark) && !slices.Contains(roles, name+i.Role) {
				roles = append(roles, name+i.Role)
			}
		}
	}
	slices.Sort(roles)
	r.Context = strings.Join(roles, ", ")
	r.Last = slices.DeleteFunc(slices.Clone(r.Last), func(i item) bool {
		return !i.Result && !strings.Contains(i.Text, brought) && !strings.Contains(i.Text, because)
	})
	return r
}

// said is the last that an agent wrote: the result of Claude Code's stream of JSON, else the end of its output.
func said(output string) string {
	output = strings.TrimSpace(output)
	last := output[strings.LastIndexByte(output, '\n')+1:]
	var end struct {
		Result string `json:"result"`
	}
	if json.Unmarshal([]byte(last), &end) == nil && end.Result != "" {
		return end.Result
	}
	if len(output) > 400 {
		output = output[len(output)-400:]
	}
	return output
}
