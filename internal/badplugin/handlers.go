//go:build unix

package badplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// handler is a hook that knows its program.
type handler func(ctx context.Context, p *Program, c *sdk.Call) ([]phases.Contribution, error)

// handlers are the modes of plugins that are served by the sdk.
func handlers() map[string]handler {
	return map[string]handler{
		"good":      good,
		"slow":      slow,
		"deaf":      deaf,
		"stop":      stop,
		"stubborn":  stubborn,
		"crash":     crash,
		"big":       func(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) { return text("bad", 5<<20) },
		"long":      func(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) { return text("bad", 30_000) },
		"taken":     func(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) { return text("good", 10) },
		"flood-err": floodErr,
		"flood-out": floodOut,
		"children":  children,
		"orphans":   orphans,
	}
}

// good answers with one section under the plugin's own name.
func good(_ context.Context, _ *Program, c *sdk.Call) ([]phases.Contribution, error) {
	if c.Phase != phases.PrePromptCompile {
		return nil, nil
	}
	name, _, _ := strings.Cut(c.Subscription, ".")
	return text(name, 10)
}

// text is a section of n characters.
func text(section string, n int) ([]phases.Contribution, error) {
	return sdk.Reply(&phases.PromptSection{SectionID: section, Title: section, Content: strings.Repeat("x", n)})
}

// slow takes the whole time that it has, and says so.
func slow(ctx context.Context, _ *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// deaf never answers.
func deaf(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) {
	select {}
}

// stop stops the whole process, as a debugger or a terminal would.
func stop(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) {
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return nil, err
	}
	select {} // it takes a moment, and somebody may continue the process
}

// stubborn never answers. Its process does not end when it is asked to.
func stubborn(_ context.Context, p *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	signal.Ignore(syscall.SIGTERM)
	if _, err := fmt.Fprintln(p.stderr, "ready"); err != nil {
		return nil, err
	}
	select {}
}

// crash ends the process with last words, once as many calls are there as
// "calls=" says.
func crash(_ context.Context, p *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	if wait := p.arg("calls"); wait != "" && len(wait) > p.calls() {
		select {} // the last call takes the others with it
	}
	if _, err := fmt.Fprintln(p.stderr, "last words"); err != nil {
		return nil, err
	}
	p.Exit(3)
	return nil, errors.New("the process lives")
}

// calls is how often the hook was called.
func (p *Program) calls() int {
	data, err := os.ReadFile(p.arg("count"))
	if err != nil {
		return 0
	}
	return len(data)
}

// floodErr writes far more lines than anybody wants, and answers.
func floodErr(ctx context.Context, p *Program, c *sdk.Call) ([]phases.Contribution, error) {
	lines := strings.Repeat(strings.Repeat("y", 99)+"\n", 1000)
	for range 20 {
		if _, err := p.stderr.WriteString(lines); err != nil {
			return nil, err
		}
	}
	return good(ctx, p, c)
}

// floodOut writes more to standard output than any pipe holds, without an end of
// line, and answers.
func floodOut(ctx context.Context, p *Program, c *sdk.Call) ([]phases.Contribution, error) {
	if _, err := p.stdout.WriteString(strings.Repeat("x", 1<<20)); err != nil {
		return nil, err
	}
	return good(ctx, p, c)
}

// children starts children and answers.
func children(ctx context.Context, p *Program, c *sdk.Call) ([]phases.Contribution, error) {
	if err := p.startChildren(ctx); err != nil {
		return nil, err
	}
	return good(ctx, p, c)
}

// orphans starts children and leaves them alone.
func orphans(ctx context.Context, p *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	if err := p.startChildren(ctx); err != nil {
		return nil, err
	}
	p.Exit(4)
	return nil, errors.New("the process lives")
}

// pause waits for a moment that is long for a machine.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
