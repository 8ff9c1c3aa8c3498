//go:build unix

package badplugin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/internal/wire/wiretest"
)

// rawAnswer answers a Dispatch frame by frame.
type rawAnswer func(p *Program, s *wiretest.Session, f *wiretest.Frame) error

// Section and Right are the answer that counts, Wrong is one that must not be used.
const (
	Section = "bad"
	Right   = "right"
	Wrong   = "wrong"
)

// rawAnswers are the modes of plugins that break the wire.
func rawAnswers() map[string]rawAnswer {
	content := func(text string) rawAnswer {
		return func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error { return Answer(s, f, text) }
	}
	details := func(json []byte) rawAnswer {
		return func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			return s.Send(wiretest.Audit(f.ID, f.Incarnation, json))
		}
	}
	return map[string]rawAnswer{
		"raw-good":  content(Right),
		"nul":       content("a\x00b"),
		"bidi":      content("a\u202eb"),
		"surrogate": details([]byte(`"\ud800"`)),
		"deep":      details(slices.Concat(bytes.Repeat([]byte("["), depth), bytes.Repeat([]byte("]"), depth))),
		"double":    double,
		"late":      late,
		"wrong-id":  wrongID,
		"stale":     stale,
		"stale-only": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			return s.Send(wiretest.Section(f.ID, f.Incarnation+1, Section, Wrong))
		},
		"half":     half,
		"not-utf8": notUTF8,
		"empty":    func(_ *Program, s *wiretest.Session, _ *wiretest.Frame) error { return s.Send(nil) },
		"garbage": func(_ *Program, s *wiretest.Session, _ *wiretest.Frame) error {
			return s.Send(bytes.Repeat([]byte{0xff}, 100))
		},
		"huge": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			return Answer(s, f, strings.Repeat("x", 100<<20))
		},
		"hang-up": func(*Program, *wiretest.Session, *wiretest.Frame) error { return errors.New("enough") },
		"many-raw": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			return s.Send(wiretest.Sections(f.ID, f.Incarnation, crowd, Section, "x"))
		},
		"dribble": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
			s.Dribble(trickle)
			return Answer(s, f, strings.Repeat("x", 1000))
		},
		"spin": func(*Program, *wiretest.Session, *wiretest.Frame) error {
			for n := uint64(1); n != 0; n += 2 { // odd for ever
			}
			return errors.New("the loop has ended")
		},
	}
}

// Answer is the one answer that a Dispatch should get.
func Answer(s *wiretest.Session, f *wiretest.Frame, content string) error {
	return s.Send(wiretest.Section(f.ID, f.Incarnation, Section, content))
}

// double answers twice.
func double(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return errors.Join(Answer(s, f, Right), Answer(s, f, Wrong))
}

// late answers when the hook's time is over.
func late(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	pause(context.Background(), 400*time.Millisecond)
	return Answer(s, f, Wrong)
}

// wrongID answers what nobody asked, and then what was asked.
func wrongID(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return errors.Join(s.Send(wiretest.Section(f.ID+1000, f.Incarnation, Section, Wrong)), Answer(s, f, Right))
}

// stale answers for another start of the plugin, and then for this one.
func stale(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return errors.Join(s.Send(wiretest.Section(f.ID, f.Incarnation+1, Section, Wrong)), Answer(s, f, Right))
}

// half dies in the middle of an answer.
func half(p *Program, s *wiretest.Session, f *wiretest.Frame) error {
	s.CutAfter(100_000, func() { p.Exit(5) })
	if err := s.Send(wiretest.Section(f.ID, f.Incarnation, Section, string(bytes.Repeat([]byte("x"), 1<<20)))); err != nil {
		return err
	}
	return p.Block()
}

// notUTF8 answers with a text that is not UTF-8.
func notUTF8(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	data := wiretest.Section(f.ID, f.Incarnation, Section, "MARK")
	return s.Send(bytes.Replace(data, []byte("MARK"), []byte("\xff\xfe\xfd\xfc"), 1))
}

// serveRaw serves a hook of turn.pre_prompt_compile by hand, "h". With the
// argument "other" there is a second one, which is never answered.
func (p *Program) serveRaw(wrongly rawAnswer) error {
	plugin := wiretest.Plugin{Name: "bad", Version: "1.0.0", Hooks: []string{"h"}, Kinds: []string{"prompt_section", "audit"}}
	if slices.Contains(p.Args, "other") {
		plugin.Hooks = append(plugin.Hooks, "other")
	}
	return p.ServeScript(wiretest.Answering(plugin, func(s *wiretest.Session, f *wiretest.Frame) error {
		if f.Hook == "other" {
			return nil
		}
		return wrongly(p, s, f)
	}))
}

// silent opens a session and says nothing on it.
func (p *Program) silent() error {
	return p.ServeScript(func(s *wiretest.Session) error {
		for {
			if _, err := s.Receive(); err != nil {
				return err
			}
		}
	})
}

// twoHooks describes one hook twice, which the sdk would not.
func (p *Program) twoHooks() error {
	plugin := wiretest.Plugin{Name: "bad", Version: "1.0.0", Hooks: []string{"h", "h"}}
	return p.ServeScript(wiretest.Answering(plugin, func(s *wiretest.Session, f *wiretest.Frame) error { return Answer(s, f, Right) }))
}

// ServeScript serves sessions by hand.
func (p *Program) ServeScript(script wiretest.Script) error {
	if os.Getenv(wire.TransportKey) == wire.TransportStdio {
		return wiretest.ServeStdio(script)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: wire.ProtocolVersion, MagicCookieKey: wire.HandshakeCookieKey, MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins:    plugin.PluginSet{wire.PluginName: &served{script: script}},
		GRPCServer: func(opts []wire.ServerOption) *wire.Server { return wiretest.NewServer(opts...) },
		Logger:     hclog.NewNullLogger(),
	})
	return nil
}

// served is a script as go-plugin sees it.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	script wiretest.Script
}

var _ plugin.GRPCPlugin = (*served)(nil)

func (s *served) GRPCServer(_ *plugin.GRPCBroker, server *wire.Server) error {
	wiretest.Register(server, s.script)
	return nil
}

func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *wire.ClientConn) (any, error) {
	return nil, errors.New("badplugin: not a client")
}
