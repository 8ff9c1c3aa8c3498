package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// moment is what happens to the gateway around a burst of calls.
type moment struct {
	name          string
	before, after syscall.Signal // to the gateway; it has ended, or has begun to reload, when the calls come
	during        bool           // it is killed as soon as it listens
	later         time.Duration  // no sooner than this after the calls were sent, times a number that differs
	cold          bool           // in a home that is new
}

func moments() []moment {
	return []moment{
		{name: "the first of a new home", cold: true},
		{name: "the first of a new home, kill -9 after the answer", cold: true, after: syscall.SIGKILL},
		{name: "kill -9 before", before: syscall.SIGKILL},
		{name: "kill -9 before, and after the answer", before: syscall.SIGKILL, after: syscall.SIGKILL},
		{name: "kill -9 after the answer", after: syscall.SIGKILL},
		{name: "kill -9 as soon as it listens", during: true},
		{name: "restart", before: syscall.SIGTERM},
		{name: "reload", before: syscall.SIGHUP},
		{name: "nothing"},
		{name: "kill -9 while it judges", during: true, later: 2 * time.Millisecond},
	}
}

// event is a call that was sent.
type event struct {
	moment    int
	session   string
	forbidden bool   // the guard denies it
	denied    string // by whom; empty if it was let pass
}

const (
	byHook    = "grapnel-hook"
	byGateway = "the gateway"
)

// soak sends n calls, every other one forbidden, and fails if one of those passes, or if a call is not on record.
func (l *lab) soak(ctx context.Context, n int) error {
	kinds := moments()
	events := make([]event, n)
	rows := make([]map[string]bool, l.parallel) // the sessions on record
	errs := make([]error, l.parallel)
	var running sync.WaitGroup
	for worker := range l.parallel {
		running.Go(func() {
			rows[worker] = map[string]bool{}
			errs[worker] = l.soakOne(ctx, worker, events, kinds, rows[worker])
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	seen, bad := map[string]int{}, false
	note := func(e *event, what string) { seen[kinds[e.moment].name+": "+what]++ }
	for i := range events {
		e := &events[i]
		if e.forbidden && e.denied == "" {
			bad = true
			note(e, "a forbidden call passed")
		} else if e.denied != "" && !e.forbidden || e.denied == byHook {
			note(e, "a call was denied by "+e.denied)
		}
		if !rows[i%l.parallel][e.session] {
			bad = true
			note(e, "a call is not on record")
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		fmt.Printf("%4d× %s\n", seen[what], what)
	}
	fmt.Printf("%d calls\n", n)
	if bad {
		return errors.New("a forbidden call passed, or a call is not on record")
	}
	return nil
}

// soakOne sends one worker's share of the calls, in bursts of one to three, to gateways of its own.
func (l *lab) soakOne(ctx context.Context, worker int, events []event, kinds []moment, rows map[string]bool) (err error) {
	var t *trial
	defer func() {
		if t != nil {
			err = errors.Join(err, t.finish(ctx, rows))
		}
	}()
	for step, i := 0, worker; i < len(events); step++ {
		kind := (step + worker) % len(kinds)
		m := kinds[kind]
		m.later *= time.Duration(step / len(kinds) % 10)
		if t == nil || m.cold {
			if t != nil {
				if err := t.finish(ctx, rows); err != nil {
					return err
				}
			}
			home := filepath.Join(l.work, fmt.Sprintf("soak-%d-%d", worker, step))
			if t, err = l.newTrial(&agents()[0], &check{guard: house + others}, home); err != nil {
				return err
			}
		}
		var burst []*event
		for range 1 + step%3 {
			if i < len(events) {
				events[i] = event{moment: kind, session: fmt.Sprintf("session-%d", i), forbidden: len(burst)%2 == 0}
				burst = append(burst, &events[i])
				i += l.parallel
			}
		}
		if err := t.send(ctx, m, burst); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the gateway, and adds what is on record.
func (t *trial) finish(ctx context.Context, rows map[string]bool) error {
	if err := endGateway(ctx, t.socket, syscall.SIGTERM); err != nil {
		return err
	}
	calls, err := t.calls(ctx)
	for _, c := range calls {
		rows[c.Thread] = true
	}
	return errors.Join(err, t.end(ctx))
}

// send sends calls at once, at the moment.
func (t *trial) send(ctx context.Context, m moment, burst []*event) error {
	var err error
	switch m.before {
	case 0:
	case syscall.SIGHUP:
		_, err = signalGateway(t.socket, m.before)
	default:
		err = endGateway(ctx, t.socket, m.before)
	}
	if err != nil {
		return err
	}
	errs := make([]error, len(burst))
	var calls sync.WaitGroup
	for i, e := range burst {
		calls.Go(func() { errs[i] = t.hook(ctx, e) })
	}
	answered := make(chan struct{})
	var killer sync.WaitGroup
	if m.during {
		killer.Go(func() {
			time.Sleep(m.later)
			err = t.killWhile(answered)
		})
	}
	calls.Wait()
	close(answered)
	killer.Wait()
	if m.after != 0 {
		err = errors.Join(err, endGateway(ctx, t.socket, m.after))
	}
	return errors.Join(append(errs, err)...)
}

// killWhile kills the gateway once, as soon as it listens.
func (t *trial) killWhile(answered <-chan struct{}) error {
	for {
		if pid, err := signalGateway(t.socket, syscall.SIGKILL); err != nil || pid != 0 {
			return err
		}
		select {
		case <-answered:
			return nil
		case <-time.After(time.Millisecond):
		}
	}
}

// hook sends a call as Claude Code would.
func (t *trial) hook(ctx context.Context, e *event) error {
	tool, args := "Read", map[string]string{"file_path": filepath.Join(t.dir, "a.txt")}
	if e.forbidden {
		tool, args = "Bash", map[string]string{"command": "cat .env"}
	}
	payload, err := json.Marshal(map[string]any{
		"session_id": e.session, "transcript_path": filepath.Join(t.home, "transcript"), "cwd": t.dir, "permission_mode": "default",
		"hook_event_name": preToolUse, "tool_name": tool, "tool_input": args, "tool_use_id": "toolu_" + e.session,
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(t.lab.bin, "grapnel-hook"), "claude-code", preToolUse) // built here
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = t.dir, t.env, bytes.NewReader(payload), time.Second
	log, err := os.OpenFile(filepath.Join(t.home, "hooks.err"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // what is missing in it is missing
	cmd.Stderr = log
	out, err := cmd.Output()
	switch {
	case cmd.ProcessState == nil:
		return err
	case cmd.ProcessState.ExitCode() == 2:
		e.denied = byHook
	case err != nil:
		return fmt.Errorf("grapnel-hook: %w, see %s", err, log.Name())
	case bytes.Contains(out, []byte(`"permissionDecision":"deny"`)):
		e.denied = byGateway
	}
	return nil
}
