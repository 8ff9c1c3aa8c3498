//go:build unix

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
)

// rawAnswer answers a Dispatch frame by frame.
type rawAnswer func(p *badProgram, s *rawSession, f *rawFrame) error

// badSection and rightText are the answer that counts, wrongText is one that must not be used.
const (
	badSection = "bad"
	rightText  = "right"
	wrongText  = "wrong"
)

// rawAnswers are the modes of plugins that break the wire.
func rawAnswers() map[string]rawAnswer {
	content := func(text string) rawAnswer {
		return func(_ *badProgram, s *rawSession, f *rawFrame) error { return answerWith(s, f, text) }
	}
	details := func(json []byte) rawAnswer {
		return func(_ *badProgram, s *rawSession, f *rawFrame) error {
			return s.Send(auditFrame(f.ID, f.Incarnation, json))
		}
	}
	return map[string]rawAnswer{
		"raw-good":  content(rightText),
		"nul":       content("a\x00b"),
		"surrogate": details([]byte(`"\ud800"`)),
		"deep":      details(slices.Concat(bytes.Repeat([]byte("["), depth), bytes.Repeat([]byte("]"), depth))),
		"double":    double,
		"late":      tooLate,
		"wrong-id":  wrongID,
		"stale":     stale,
		"stale-only": func(_ *badProgram, s *rawSession, f *rawFrame) error {
			return s.Send(sectionFrame(f.ID, f.Incarnation+1, wrongText))
		},
		"half":     half,
		"not-utf8": notUTF8,
		"garbage": func(_ *badProgram, s *rawSession, _ *rawFrame) error {
			return s.Send(bytes.Repeat([]byte{0xff}, 100))
		},
		"huge": func(_ *badProgram, s *rawSession, f *rawFrame) error {
			return answerWith(s, f, strings.Repeat("x", 100<<20))
		},
		"hang-up": func(*badProgram, *rawSession, *rawFrame) error { return errors.New("enough") },
		"dribble": func(_ *badProgram, s *rawSession, f *rawFrame) error {
			s.Dribble(trickle)
			return answerWith(s, f, strings.Repeat("x", 1000))
		},
		"spin": func(*badProgram, *rawSession, *rawFrame) error {
			for n := uint64(1); n != 0; n += 2 { // odd for ever
			}
			return errors.New("the loop has ended")
		},
	}
}

// answerWith is the one answer that a Dispatch should get.
func answerWith(s *rawSession, f *rawFrame, content string) error {
	return s.Send(sectionFrame(f.ID, f.Incarnation, content))
}

// double answers twice.
func double(_ *badProgram, s *rawSession, f *rawFrame) error {
	return errors.Join(answerWith(s, f, rightText), answerWith(s, f, wrongText))
}

// late answers when the hook's time is over.
func tooLate(_ *badProgram, s *rawSession, f *rawFrame) error {
	pause(context.Background(), 400*time.Millisecond)
	return answerWith(s, f, wrongText)
}

// wrongID answers what nobody asked, and then what was asked.
func wrongID(_ *badProgram, s *rawSession, f *rawFrame) error {
	return errors.Join(s.Send(sectionFrame(f.ID+1000, f.Incarnation, wrongText)), answerWith(s, f, rightText))
}

// stale answers for another start of the plugin, and then for this one.
func stale(_ *badProgram, s *rawSession, f *rawFrame) error {
	return errors.Join(s.Send(sectionFrame(f.ID, f.Incarnation+1, wrongText)), answerWith(s, f, rightText))
}

// half dies in the middle of an answer.
func half(p *badProgram, s *rawSession, f *rawFrame) error {
	s.CutAfter(100_000, func() { os.Exit(5) })
	if err := s.Send(sectionFrame(f.ID, f.Incarnation, string(bytes.Repeat([]byte("x"), 1<<20)))); err != nil {
		return err
	}
	return p.Block()
}

// notUTF8 answers with a text that is not UTF-8.
func notUTF8(_ *badProgram, s *rawSession, f *rawFrame) error {
	data := sectionFrame(f.ID, f.Incarnation, "MARK")
	return s.Send(bytes.Replace(data, []byte("MARK"), []byte("\xff\xfe\xfd\xfc"), 1))
}

// serveRaw serves a hook of turn.pre_prompt_compile by hand, "h". With the
// argument "other" there is a second one, which is never answered.
func (p *badProgram) serveRaw(wrongly rawAnswer) error {
	plugin := rawPlugin{Name: "bad", Version: "1.0.0", Hooks: []string{"h"}, Kinds: []string{"prompt_section", "audit"}}
	if slices.Contains(p.Args, "other") {
		plugin.Hooks = append(plugin.Hooks, "other")
	}
	return p.ServeScript(answering(plugin, func(s *rawSession, f *rawFrame) error {
		if f.Hook == "other" {
			return nil
		}
		return wrongly(p, s, f)
	}))
}

// silent opens a session and says nothing on it.
func (p *badProgram) silent() error {
	return p.ServeScript(func(s *rawSession) error {
		for {
			if _, err := s.Receive(); err != nil {
				return err
			}
		}
	})
}

// twoHooks describes one hook twice, which the sdk would not.
func (p *badProgram) twoHooks() error {
	plugin := rawPlugin{Name: "bad", Version: "1.0.0", Hooks: []string{"h", "h"}}
	return p.ServeScript(answering(plugin, func(s *rawSession, f *rawFrame) error { return answerWith(s, f, rightText) }))
}

// ServeScript serves sessions by hand.
func (p *badProgram) ServeScript(script rawScript) error {
	if os.Getenv(wire.TransportKey) == wire.TransportStdio {
		return serveRawStdio(script)
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: wire.ProtocolVersion, MagicCookieKey: wire.HandshakeCookieKey, MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins:    goplugin.PluginSet{wire.PluginName: &served{script: script}},
		GRPCServer: func(opts []wire.ServerOption) *wire.Server { return newRawServer(opts...) },
		Logger:     hclog.NewNullLogger(),
	})
	return nil
}

// served is a script as go-plugin sees it.
type served struct {
	goplugin.NetRPCUnsupportedPlugin
	script rawScript
}

var _ goplugin.GRPCPlugin = (*served)(nil)

func (s *served) GRPCServer(_ *goplugin.GRPCBroker, server *wire.Server) error {
	registerRaw(server, s.script)
	return nil
}

func (s *served) GRPCClient(context.Context, *goplugin.GRPCBroker, *wire.ClientConn) (any, error) {
	return nil, errors.New("badplugin: not a client")
}
