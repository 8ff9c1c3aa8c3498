package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
)

// refusesPerson starts the plugin as a person does, without the cookie.
func refusesPerson(t *trial) error {
	spec := t.spec()
	spec.NoCookie = true
	spawned := make(chan *proc.Process, 1)
	spec.Spawned = func(p *proc.Process) { spawned <- p }
	ctx, cancel := context.WithTimeout(t.ctx, t.o.Patience)
	defer cancel()
	if p, err := proc.Start(ctx, spec); err == nil {
		defer func() { _ = p.Stop(context.WithoutCancel(t.ctx)) }() // it should have gone
	} else if len(spawned) == 0 {
		return err
	}
	process := <-spawned
	select {
	case <-process.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return fmt.Errorf("without the cookie, the process still runs after %v", t.o.Patience)
	}
	e := process.Exit()
	switch {
	case e.Code == 0:
		return errors.New("without the cookie, the process exits with 0")
	case len(e.Stderr) == 0:
		return errors.New("without the cookie, the process writes nothing to standard error")
	}
	return nil
}

// end ends the session as a host does, without any signal, and waits for the exit.
func (h *host) end() (proc.Exit, bool) {
	_ = h.pong(drain, quickly) // drain.answers is about this
	_ = h.peer.CloseSend()     // the plugin may have gone
	h.reader.Go(h.process.HangUp)
	return h.gone()
}

// gone waits for the exit.
func (h *host) gone() (proc.Exit, bool) {
	select {
	case <-h.process.Done():
		return h.process.Exit(), true
	case <-time.After(leave):
		return proc.Exit{}, false
	}
}

// work has the plugin answer some calls. Whether it does is the business of other checks.
func (h *host) work() {
	list, _ := h.t.calls(min(h.t.slots(), 8), callTime)
	_ = h.all(h.sendAll(list))
}

func exits(h *host) error {
	h.work()
	e, ended := h.end()
	if !ended {
		return fmt.Errorf("the process still runs %v after the end of the session", leave)
	}
	tail := cut(strings.Join(e.Stderr[max(0, len(e.Stderr)-5):], " | "))
	if e.Code != 0 {
		return fmt.Errorf("the process ends with %s; the end of its standard error: %q", e, tail)
	}
	for _, mark := range []string{"Traceback (most recent call last)", "panic: ", "Unhandled", "thread 'main' panicked"} {
		if strings.Contains(strings.Join(e.Stderr, "\n"), mark) {
			return fmt.Errorf("the end leaves a stack trace on standard error: %q", tail)
		}
	}
	return nil
}

func endsOnSIGTERM(h *host) error {
	if runtime.GOOS == "windows" {
		return skipped("this system has no SIGTERM")
	}
	h.work()
	h.process.Signal(syscall.SIGTERM)
	if _, ended := h.gone(); !ended {
		return fmt.Errorf("the process still runs %v after SIGTERM", leave)
	}
	return nil
}

func leavesNoChildren(h *host) error {
	if runtime.GOOS != "linux" {
		return skipped("this system does not say who started a process")
	}
	h.work()
	if _, ended := h.end(); !ended {
		return skipped("the process does not end: see end.exit")
	}
	if n := h.process.Orphans(); n > 0 {
		return fmt.Errorf("the plugin has ended, and %d processes that it had started were still there", n)
	}
	return nil
}

const (
	leakSlack  = 8                // descriptors that a runtime may open late
	leakTime   = 20 * time.Second // bounds the calls of a slow plugin
	leakWarm   = 64               // calls before the first count
	leakTooFew = 200              // fewer calls than this prove nothing
)

func keepsDescriptors(h *host) error {
	list, err := h.t.calls(h.t.slots(), callTime)
	if err != nil {
		return err
	}
	if _, ok := descriptors(h.process.PID()); !ok {
		return skipped("this system does not show the descriptors of a process")
	}
	until := time.Now().Add(leakTime)
	batch := func(n int) (made int, err error) {
		for ; made < n && time.Now().Before(until); made += len(list) {
			if err := h.all(h.sendAll(list)); err != nil {
				return made, err
			}
			h.forget()
		}
		return made, nil
	}
	if _, err := batch(leakWarm); err != nil {
		return err
	}
	before, _ := descriptors(h.process.PID())
	made, err := batch(h.t.o.Calls)
	if err != nil {
		return err
	}
	after, ok := descriptors(h.process.PID())
	switch {
	case !ok:
		return fmt.Errorf("the process has ended after %d calls", made)
	case after > before+leakSlack:
		return fmt.Errorf("%d calls have raised the open descriptors from %d to %d", made, before, after)
	case made < min(h.t.o.Calls, leakTooFew):
		return skipped(fmt.Sprintf("only %d calls were answered within %v", made, leakTime))
	}
	return nil
}

func descriptors(pid int) (int, bool) {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	return len(entries), err == nil
}
