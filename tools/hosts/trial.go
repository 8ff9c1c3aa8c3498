package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const runTime = 3 * time.Minute // for one agent on a busy machine

// trial is one run of a check.
type trial struct {
	lab       *lab
	agent     *agent
	check     *check
	home, dir string
	socket    string
	env       []string
	model     *model
	output    []byte
	serving   *exec.Cmd // the gateway, if no hook starts one
}

// newTrial makes the home of a run. It is ended by end.
func (l *lab) newTrial(a *agent, c *check, home string) (*trial, error) {
	run, err := os.MkdirTemp("", "agents") // paths of sockets are short
	if err != nil {
		return nil, err
	}
	t := &trial{lab: l, agent: a, check: c, home: home, dir: filepath.Join(home, cmp.Or(c.does, "work")), socket: filepath.Join(run, "grapnel", "hook.sock")}
	t.env = []string{
		"HOME=" + home, "PATH=" + l.bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + run, "TERM=dumb", "NO_COLOR=1",
	}
	return t, t.write()
}

// try runs a check once.
func (l *lab) try(ctx context.Context, a *agent, c *check, home string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.lasts, runTime))
	defer cancel()
	t, err := l.newTrial(a, c, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end(context.WithoutCancel(ctx))) }()
	t.model = newModel(t.script(ctx))
	defer t.model.server.Close()
	if c.tour {
		return t.tour(ctx)
	}
	if c.truth {
		return t.truth(ctx)
	}
	if c.mods {
		return t.mods(ctx)
	}
	return cmp.Or(t.run(ctx), t.judge(ctx))
}

// end kills the gateway if it still runs, and keeps its log.
func (t *trial) end(ctx context.Context) error {
	err := endGateway(ctx, t.socket, syscall.SIGKILL)
	if t.serving != nil {
		_ = t.serving.Wait() // it was killed
	}
	log, readErr := os.ReadFile(filepath.Join(filepath.Dir(t.socket), "hook.log"))
	if readErr == nil { // no gateway, no log
		err = errors.Join(err, os.WriteFile(filepath.Join(t.home, "hook.log"), log, 0o600))
	}
	return errors.Join(err, os.RemoveAll(filepath.Dir(filepath.Dir(t.socket))))
}

// write makes the home and what the agent finds.
func (t *trial) write() error {
	config := "version: 1\nstore: sqlite:" + t.store() + "\nplugins:\n" + strings.NewReplacer("PROGRAM", t.lab.self, shellTool, t.agent.shell).Replace(cmp.Or(t.check.guard, guarded))
	files := map[string]string{filepath.Join(t.dir, ".env"): secret + "\n"}
	if !t.check.tour {
		files[filepath.Join(t.home, ".config", "grapnel", "grapnel.yaml")] = config
	}
	if t.check.other != "" {
		dir := filepath.Join(t.home, ".claude", "skills", "other")
		files[filepath.Join(dir, ".claude-plugin", "plugin.json")] = `{"name": "other"}`
		files[filepath.Join(dir, "hooks", "hooks.json")] = `{"modules": ["./register.js"]}`
		files[filepath.Join(dir, "hooks", "register.js")] = "export function register(on) {\n" + t.check.other + "\n}\n"
	}
	for name, text := range t.check.files {
		files[filepath.Join(t.dir, name)] = text
	}
	if t.check.preset != "" {
		t.dir = filepath.Join(t.home, "tree", "sub")
		for name, text := range instructionFiles(t.check.preset) {
			files[filepath.Join(t.home, name)] = text
		}
	}
	for path, text := range files {
		if err := writeFile(path, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) store() string { return filepath.Join(t.home, "grapnel.db") }

// script makes the calls of the check.
func (t *trial) script(ctx context.Context) script {
	return func(c *conversation) []call {
		if c.isSubagent() {
			return rounds(t.check.subanswers...)(c)
		}
		if slices.Contains(t.check.kill, c.round) {
			if err := endGateway(ctx, t.socket, syscall.SIGKILL); err != nil {
				return []call{shell("echo " + err.Error())} // it is seen in the home's requests
			}
		}
		if calls := rounds(t.check.answers...)(c); calls != nil {
			calls = slices.Clone(calls)
			for i := range calls {
				switch calls[i].tool {
				case serverTool:
					calls[i] = call{t.agent.server, map[string]any{}}
				case pluginTool:
					calls[i] = call{strings.Replace(t.agent.server, "probe", "grapnel", 1), map[string]any{}}
				}
			}
			return calls
		}
		if c.round == len(t.check.answers) {
			return waitFor(c.items)
		}
		return nil
	}
}

// run installs the hooks, and runs the agent.
func (t *trial) run(ctx context.Context) error {
	command, err := t.hookCommand()
	if err != nil {
		return err
	}
	args, env, err := t.agent.prepare(t, command)
	if err != nil {
		return err
	}
	if command != nil || t.check.preset != "" {
		return t.converse(ctx, args, env)
	}
	before, err := t.settings()
	if err != nil {
		return err
	}
	install := []string{"install", t.agent.name}
	if t.check.mod {
		install = append(install, "--mod")
	}
	if _, err := t.grapnel(ctx, install...); err != nil {
		return err
	}
	if t.check.uninstalled {
		if _, err := t.grapnel(ctx, "uninstall", t.agent.name); err != nil {
			return err
		}
		if after, err := t.settings(); err != nil || !maps.Equal(before, after) {
			return errors.Join(err, fmt.Errorf("grapnel uninstall left other files: %q instead of %q", after, before))
		}
	}
	if t.agent.noStart {
		if err := t.serve(ctx, env); err != nil {
			return err
		}
	}
	if t.check.before != "" {
		first := slices.Clone(args)
		first[slices.Index(first, t.prompt())] = t.check.before
		if err := cmp.Or(t.converse(ctx, first, env), t.awaitMemory(ctx)); err != nil {
			return err
		}
		t.model.bodies = nil // the agent has ended
		if t.check.cold {
			if err := endGateway(ctx, t.socket, syscall.SIGKILL); err != nil {
				return err
			}
		}
	}
	if err := t.converse(ctx, args, env); err != nil {
		return err
	}
	if err := t.goOn(ctx, args, env); err != nil {
		return err
	}
	return writeJSON(filepath.Join(t.home, "requests.json"), t.model.seen())
}

// goOn runs the agent again, with its session and with files that have another text.
func (t *trial) goOn(ctx context.Context, args, env []string) error {
	at := len(args) - 1
	for _, files := range t.check.again {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(t.dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
		if err := t.converse(ctx, slices.Concat(args[:at], t.agent.goOn, []string{"Go on."}), env); err != nil {
			return err
		}
	}
	return nil
}

// hookCommand is the command of the check's own hook; nil without one.
func (t *trial) hookCommand() ([]string, error) {
	if t.check.hook.event == "" {
		return nil, nil
	}
	file := filepath.Join(t.home, "canned.json")
	return []string{t.lab.self, cannedMode, file}, writeJSON(file, t.check.hook.canned)
}

// awaitMemory waits until what a session said is kept, which happens behind it.
func (t *trial) awaitMemory(ctx context.Context) error {
	for ctx.Err() == nil {
		out, err := t.grapnel(ctx, "memory", "list", "--workspace", "local", "--json")
		if err != nil || strings.Contains(string(out), t.check.told[0]) {
			return err
		}
	}
	return context.Cause(ctx)
}

// converse runs the agent.
func (t *trial) converse(ctx context.Context, args, env []string) (err error) {
	cmd := t.agent.start(ctx, t.dir, args, slices.Concat(t.env, env))
	output, err := cmd.CombinedOutput()
	t.output = append(t.output, output...)
	if cmd.ProcessState == nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the agent does not end: %s", said(string(t.output)))
	}
	return os.WriteFile(filepath.Join(t.home, "output"), t.output, 0o600)
}

// serve starts a gateway, as the person has to.
func (t *trial) serve(ctx context.Context, env []string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(t.lab.bin, "grapnel"), "serve", "--json", "--socket", t.socket) // built here
	cmd.Env = slices.Concat(t.env, env)
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, os.Mkdir(filepath.Dir(t.socket), 0o700)); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.serving = cmd
	return json.NewDecoder(out).Decode(&struct{}{}) // it is ready
}

// settings are the agent's own files.
func (t *trial) settings() (map[string]string, error) {
	files := map[string]string{}
	for _, dir := range []string{".claude", ".claude.json", ".codex", ".gemini", ".config/opencode"} {
		err := filepath.WalkDir(filepath.Join(t.home, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			files[path] = string(data)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}

// grapnel runs the command as the person would.
func (t *trial) grapnel(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.lab.bin, "grapnel"), args...) // built here
	cmd.Dir, cmd.Env = t.dir, t.env
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("grapnel %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// judge compares what is there now with what is wanted.
func (t *trial) judge(ctx context.Context) error {
	c := t.check
	if c.preset != "" {
		return t.compareInstructions(ctx)
	}
	ran, err := t.ran()
	if err != nil {
		return err
	}
	var errs []error
	if !slices.Equal(ran, c.ran) {
		errs = append(errs, fmt.Errorf("the calls left the files %q instead of %q", ran, c.ran))
	}
	errs = append(errs, t.reached(c.secret))
	bodies := strings.Join(t.model.bodies, "\n")
	for _, text := range c.told {
		if !strings.Contains(bodies, text) {
			errs = append(errs, fmt.Errorf("the model was not told %q", text))
		}
	}
	if n := len(t.model.seen()); c.noRequest && n > 0 {
		errs = append(errs, fmt.Errorf("the model got %d requests", n))
	}
	errs = append(errs, t.count())
	if err := endGateway(ctx, t.socket, syscall.SIGTERM); err != nil {
		return err
	}
	rows, err := t.recorded(ctx)
	if err != nil {
		return err
	}
	if c.sent {
		errs = append(errs, t.compareSent(ctx))
	}
	if c.before != "" {
		out, err := t.grapnel(ctx, "explain", "memory_recall", "--json")
		if err != nil || !strings.Contains(string(out), `"in": true`) || strings.Contains(string(out), "not delivered") {
			errs = append(errs, fmt.Errorf("the record does not say that it was delivered: %w %s", err, out))
		}
	}
	names := strings.NewReplacer(shellTool, t.agent.shell, serverTool, t.agent.server)
	for _, want := range c.record {
		want = names.Replace(want)
		i := slices.Index(rows, want)
		if i < 0 {
			errs = append(errs, fmt.Errorf("%q is not on record", want))
			continue
		}
		rows = slices.Delete(rows, i, i+1)
	}
	if errors.Join(errs...) != nil {
		errs = append(errs, fmt.Errorf("other calls on record: %q; the model got %d requests", rows, len(t.model.seen())))
	}
	return errors.Join(errs...)
}

// count compares how often the last request has texts.
func (t *trial) count() error {
	var last strings.Builder
	if seen := t.model.seen(); len(seen) > 0 {
		for _, i := range seen[len(seen)-1] {
			last.WriteString(i.Text + "\n")
		}
	}
	var errs []error
	for text, want := range t.check.times {
		if n := strings.Count(last.String(), text); n != want {
			errs = append(errs, fmt.Errorf("the last request has %q %d times instead of %d", text, n, want))
		}
	}
	return errors.Join(errs...)
}

// ran are the files that appeared in the working directory.
func (t *trial) ran() (names []string, err error) {
	entries, err := os.ReadDir(t.dir)
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != ".env" && t.check.files[e.Name()] == "" {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// recorded are the judged calls of the record, as "TOOL VERDICT", and "rewritten" behind those that a plugin changed.
func (t *trial) recorded(ctx context.Context) (rows []string, err error) {
	calls, err := t.calls(ctx)
	for _, c := range calls {
		row := c.Tool + " " + cmp.Or(c.Verdict, strings.TrimPrefix(c.Phase, "tool."))
		if len(c.RewrittenBy) > 0 {
			row += " rewritten"
		}
		rows = append(rows, row)
	}
	return rows, err
}

// recordedCall is what the checks read of a call on record.
type recordedCall struct {
	Thread      string   `json:"thread_id"`
	Phase       string   `json:"phase"`
	Tool        string   `json:"tool"`
	Verdict     string   `json:"verdict"`
	RewrittenBy []string `json:"rewritten_by"`
}

// calls are what grapnel manifest calls has.
func (t *trial) calls(ctx context.Context) ([]recordedCall, error) {
	if _, err := os.Stat(t.store()); err != nil {
		return nil, nil //nolint:nilerr // nothing was recorded yet
	}
	out, err := t.grapnel(ctx, "manifest", "calls", "--json", "--limit", "1000", "--store", "sqlite:"+t.store())
	if err != nil {
		return nil, err
	}
	var list struct {
		Calls []recordedCall `json:"calls"`
	}
	return list.Calls, json.Unmarshal(out, &list)
}

// start is a run of the agent in a directory, with its children as a group that ends with ctx.
func (a *agent) start(ctx context.Context, dir string, args, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, a.command[0], slices.Concat(a.command[1:], args)...)
	cmd.Dir, cmd.WaitDelay, cmd.Env = dir, time.Second, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Gemini CLI runs in a child of its own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// said is the last that an agent wrote.
func said(output string) string { return output[max(0, len(output)-400):] }
