//go:build unix

package badplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire/wiretest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// wordHandlers are the modes of plugins that are served by the sdk and say what
// they should not.
func wordHandlers() map[string]handler {
	return map[string]handler{
		"forge":   forge,
		"where":   where,
		"nothing": func(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) { return nil, nil },
		"many":    many,
		"leak":    leak,
		"twins": func(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: section, Content: "first"}, &phases.PromptSection{SectionID: section, Content: "second"})
		},
		"dirty": func(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: section, Content: "a\xff\xfeb\x00c\u202ed"},
				&phases.Audit{EventKind: "bad", Details: []byte(`"\ud800"`)})
		},
	}
}

// wordAnswers are those that break the wire for it.
func wordAnswers() map[string]rawAnswer {
	content := func(text string) rawAnswer {
		return func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error { return answer(s, f, text) }
	}
	details := func(json []byte) rawAnswer {
		return func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			return s.Send(wiretest.Audit(f.ID, f.Incarnation, json))
		}
	}
	return map[string]rawAnswer{
		"nul":       content("a\x00b"),
		"bidi":      content("a\u202eb"),
		"surrogate": details([]byte(`"\ud800"`)),
		"deep":      details(bytes.Join([][]byte{bytes.Repeat([]byte("["), depth), bytes.Repeat([]byte("]"), depth)}, nil)),
		"many-raw": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			return s.Send(wiretest.Sections(f.ID, f.Incarnation, crowd, section, "x"))
		},
		"dribble": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			s.Dribble(trickle)
			return answer(s, f, strings.Repeat("x", 1000))
		},
		"spin": func(*Program, *wiretest.Session, *wiretest.Frame) error {
			for n := uint64(1); n != 0; n += 2 { // odd for ever
			}
			return errors.New("the loop has ended")
		},
	}
}

const (
	// crowd is more contributions than anybody has a use for; all of them are
	// less than a frame.
	crowd = 100_000
	// depth is that of JSON which a recursive reader has no stack for.
	depth = 10_000
	// trickle is the pause between the bytes of those that dribble.
	trickle = 10 * time.Millisecond
)

// many answers with just too many contributions.
func many(context.Context, *Program, *sdk.Call) ([]phases.Contribution, error) {
	all := make([]phases.Contribution, phases.MaxContributions+1)
	for i := range all {
		all[i] = &phases.Noop{}
	}
	return all, nil
}

// leak keeps descriptors and goroutines with each call, and answers with how many
// it has by now.
func leak(_ context.Context, p *Program, _ *sdk.Call) ([]phases.Contribution, error) {
	for range 10 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		go func() {
			_ = block(p)
			_ = f.Close()
		}()
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	return sdk.Reply(&phases.PromptSection{SectionID: section, Content: fmt.Sprintf("%d %d", len(open), runtime.NumGoroutine())})
}

// forge writes lines that would pass for the host's, or for another plugin's, and
// answers.
func forge(ctx context.Context, p *Program, c *sdk.Call) ([]phases.Contribution, error) {
	lines := []string{
		"\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07plain\u202e",
		"over\rwritten",
		`time=1999-01-01T00:00:00Z level=ERROR msg="plugin" plugin=good state=quarantined`,
		`{"@message":"two\nlevel=ERROR msg=lines","@level":"warn","@timestamp":"1999-01-01T00:00:00Z","plugin":"good","time":"1999","level":"ERROR","msg":"forged","a\u001b[31mb":"x\ny"}`,
		`{"time":"1999-01-01T00:00:00Z","level":"ERROR","msg":"slog\u001b[0m","plugin":"good"}`,
		"the end",
	}
	if _, err := p.stderr.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		return nil, err
	}
	return good(ctx, p, c)
}

// where tells its process and its folder.
func where(ctx context.Context, p *Program, c *sdk.Call) ([]phases.Contribution, error) {
	if _, err := fmt.Fprintf(p.stderr, "folder %s\n", os.Getenv("PLUGIN_UNIX_SOCKET_DIR")); err != nil {
		return nil, err
	}
	return good(ctx, p, c)
}

// dribbleStart writes a handshake that has no end, byte by byte.
func (p *Program) dribbleStart() error {
	for i := 0; ; i++ {
		if _, err := p.stdout.WriteString("1|1|unix|/"[min(i, 9):][:1]); err != nil {
			return err
		}
		pause(context.Background(), trickle)
	}
}

// elsewhere listens, and shakes hands for the socket that an argument names, on
// which somebody else listens.
func (p *Program) elsewhere() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if _, err := fmt.Fprintf(p.stdout, "1|1|unix|%s|grpc|\n", p.arg("socket")); err != nil {
		return err
	}
	return block(p)
}
