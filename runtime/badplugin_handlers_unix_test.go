//go:build unix

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// badHandler is a hook that knows its program.
type badHandler func(ctx context.Context, p *badProgram, c *sdk.Call) ([]phases.Contribution, error)

// badHandlers are the modes of plugins that are served by the sdk.
func badHandlers() map[string]badHandler {
	says := func(cs ...phases.Contribution) badHandler {
		return func(context.Context, *badProgram, *sdk.Call) ([]phases.Contribution, error) { return cs, nil }
	}
	return map[string]badHandler{
		"good":      good,
		"slow":      slowly,
		"deaf":      func(context.Context, *badProgram, *sdk.Call) ([]phases.Contribution, error) { select {} },
		"stop":      stop,
		"stubborn":  stubborn,
		"random":    randomly,
		"crash":     crash,
		"big":       sized("bad", 5<<20),
		"long":      sized("bad", 30_000),
		"taken":     sized("good", 10),
		"nothing":   says(),
		"many":      says(slices.Repeat([]phases.Contribution{&phases.Noop{}}, phases.MaxContributions+1)...),
		"flood-err": prints(true, strings.Repeat("y", 99)+"\n", 20_000),
		"flood-out": prints(false, "x", 1<<20),
		"forge":     prints(true, forged, 1),
		"children":  children,
		"orphans":   orphans,
		"duplicates": says(&phases.PromptSection{SectionID: badSection, Content: "first"},
			&phases.PromptSection{SectionID: badSection, Content: "second"}),
		"dirty": says(&phases.PromptSection{SectionID: badSection, Content: "a\xff\xfeb\x00c\u202ed"},
			&phases.Audit{EventKind: "bad", Details: []byte(`"\ud800"`)}),
		"memory": func(ctx context.Context, p *badProgram, _ *sdk.Call) ([]phases.Contribution, error) {
			return nil, keepMemory(ctx, p.fillUp())
		},
		"reach": reach,
	}
}

// good answers with one section under the plugin's own name.
func good(_ context.Context, _ *badProgram, c *sdk.Call) ([]phases.Contribution, error) {
	if c.Phase != phases.PrePromptCompile {
		return nil, nil
	}
	name, _, _ := strings.Cut(c.Subscription, ".")
	return sdk.Reply(text(name, 10))
}

// text is a section of n characters.
func text(section string, n int) phases.Contribution {
	return &phases.PromptSection{SectionID: section, Title: section, Content: strings.Repeat("x", n)}
}

func sized(section string, n int) badHandler {
	return func(context.Context, *badProgram, *sdk.Call) ([]phases.Contribution, error) {
		return sdk.Reply(text(section, n))
	}
}

// slowly takes the whole time that it has, and says so.
func slowly(ctx context.Context, _ *badProgram, _ *sdk.Call) ([]phases.Contribution, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// randomly is good most of the time, and behaves as one of the other modes by chance.
func randomly(ctx context.Context, p *badProgram, c *sdk.Call) ([]phases.Contribution, error) {
	modes := []string{"crash", "deaf", "slow", "flood-err", "stop", "big", "long", "taken", "many", "dirty"}
	if rand.IntN(40) > 0 {
		return good(ctx, p, c)
	}
	return badHandlers()[modes[rand.IntN(len(modes))]](ctx, p, c)
}

// stop stops the whole process, as a debugger or a terminal would.
func stop(context.Context, *badProgram, *sdk.Call) ([]phases.Contribution, error) {
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return nil, err
	}
	select {} // it takes a moment, and somebody may continue the process
}

// stubborn never answers. Its process does not end when it is asked to.
func stubborn(_ context.Context, p *badProgram, _ *sdk.Call) ([]phases.Contribution, error) {
	signal.Ignore(syscall.SIGTERM)
	if _, err := fmt.Fprintln(p.Stderr, "ready"); err != nil {
		return nil, err
	}
	select {}
}

// crash ends the process with last words, once as many calls are there as "calls=" says.
func crash(_ context.Context, p *badProgram, _ *sdk.Call) ([]phases.Contribution, error) {
	if wait := p.Arg("calls"); int64(len(wait)) > p.crashes.Add(1) {
		select {} // the last call takes the others with it
	}
	if _, err := fmt.Fprintln(p.Stderr, "last words"); err != nil {
		return nil, err
	}
	os.Exit(3)
	return nil, errors.New("the process lives")
}

// prints writes a text to standard error or standard output, and answers.
func prints(stderr bool, text string, times int) badHandler {
	return func(ctx context.Context, p *badProgram, c *sdk.Call) ([]phases.Contribution, error) {
		out := p.Stdout
		if stderr {
			out = p.Stderr
		}
		if _, err := out.WriteString(strings.Repeat(text, times)); err != nil {
			return nil, err
		}
		return good(ctx, p, c)
	}
}

// forged are lines that would pass for the host's, or for another plugin's.
const forged = "\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07plain\u202e\n" +
	"over\rwritten\n" +
	`time=1999-01-01T00:00:00Z level=ERROR msg="plugin" plugin=good state=quarantined` + "\n" +
	`{"@message":"two\nlevel=ERROR msg=lines","@level":"warn","@timestamp":"1999-01-01T00:00:00Z","plugin":"good",` +
	`"time":"1999","level":"ERROR","msg":"forged","a\u001b[31mb":"x\ny"}` + "\n" +
	`{"time":"1999-01-01T00:00:00Z","level":"ERROR","msg":"slog\u001b[0m","plugin":"good"}` + "\n" +
	"the end\n"

// children starts children and answers.
func children(ctx context.Context, p *badProgram, c *sdk.Call) ([]phases.Contribution, error) {
	if err := p.startChildren(); err != nil {
		return nil, err
	}
	return good(ctx, p, c)
}

// orphans starts children and leaves them alone.
func orphans(_ context.Context, p *badProgram, _ *sdk.Call) ([]phases.Contribution, error) {
	if err := p.startChildren(); err != nil {
		return nil, err
	}
	os.Exit(4)
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

const (
	depth   = 10_000                // that of JSON which a recursive reader has no stack for
	trickle = 10 * time.Millisecond // the pause between the bytes of those that dribble
)

// dribbleStart writes a handshake that has no end, byte by byte.
func (p *badProgram) dribbleStart() error {
	for i := 0; ; i++ {
		if _, err := p.Stdout.WriteString("1|1|unix|/"[min(i, 9):][:1]); err != nil {
			return err
		}
		pause(context.Background(), trickle)
	}
}
