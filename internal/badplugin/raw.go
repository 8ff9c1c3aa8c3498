//go:build unix

package badplugin

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/internal/wire/wiretest"
)

// rawAnswer answers a Dispatch frame by frame.
type rawAnswer func(p *Program, s *wiretest.Session, f *wiretest.Frame) error

// section and text of the answer that counts.
const (
	section = "bad"
	right   = "right"
	wrong   = "wrong"
)

// rawAnswers are the modes of plugins that break the wire.
func rawAnswers() map[string]rawAnswer {
	return map[string]rawAnswer{
		"double":   double,
		"late":     late,
		"wrong-id": wrongID,
		"stale":    stale,
		"garbage":  garbage,
		"empty":    func(_ *Program, s *wiretest.Session, _ *wiretest.Frame) error { return s.Send(nil) },
		"huge":     huge,
		"half":     half,
		"not-utf8": notUTF8,
		"hang-up":  func(*Program, *wiretest.Session, *wiretest.Frame) error { return errors.New("enough") },
		"raw-good": func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error { return answer(s, f, right) },
	}
}

// answer is the one answer that a Dispatch should get.
func answer(s *wiretest.Session, f *wiretest.Frame, content string) error {
	return s.Send(wiretest.Section(f.ID, f.Incarnation, section, content))
}

// double answers twice.
func double(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return errors.Join(answer(s, f, right), answer(s, f, wrong))
}

// late answers when the hook's time is over.
func late(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	pause(context.Background(), 400*time.Millisecond)
	return answer(s, f, wrong)
}

// wrongID answers what nobody asked, and then what was asked.
func wrongID(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return errors.Join(s.Send(wiretest.Section(f.ID+1000, f.Incarnation, section, wrong)), answer(s, f, right))
}

// stale answers for another start of the plugin, and then for this one.
func stale(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return errors.Join(s.Send(wiretest.Section(f.ID, f.Incarnation+1, section, wrong)), answer(s, f, right))
}

// garbage answers with bytes that are no message.
func garbage(_ *Program, s *wiretest.Session, _ *wiretest.Frame) error {
	return s.Send(bytes.Repeat([]byte{0xff}, 100))
}

// huge answers with 100 MB in one message.
func huge(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	return s.Send(wiretest.Section(f.ID, f.Incarnation, section, string(bytes.Repeat([]byte("x"), 100<<20))))
}

// half dies in the middle of an answer.
func half(p *Program, s *wiretest.Session, f *wiretest.Frame) error {
	s.CutAfter(100_000, func() { p.Exit(5) })
	if err := s.Send(wiretest.Section(f.ID, f.Incarnation, section, string(bytes.Repeat([]byte("x"), 1<<20)))); err != nil {
		return err
	}
	return block(p)
}

// notUTF8 answers with a text that is none.
func notUTF8(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
	data := wiretest.Section(f.ID, f.Incarnation, section, "MARK")
	return s.Send(bytes.Replace(data, []byte("MARK"), []byte("\xff\xfe\xfd\xfc"), 1))
}

// serveRaw serves a hook of turn.pre_prompt_compile by hand, "h". With the
// argument "other" there is a second one, which is never answered.
func (p *Program) serveRaw(wrongly rawAnswer) error {
	plugin := wiretest.Plugin{Name: "bad", Version: "1.0.0", Hooks: []string{"h"}, Kinds: []string{"prompt_section", "audit"}}
	if slices.Contains(p.Args, "other") {
		plugin.Hooks = append(plugin.Hooks, "other")
	}
	return p.serveScript(wiretest.Answering(plugin, func(s *wiretest.Session, f *wiretest.Frame) error {
		if f.Hook == "other" {
			return nil
		}
		return wrongly(p, s, f)
	}))
}

// silent opens a session and says nothing on it.
func (p *Program) silent() error {
	return p.serveScript(func(s *wiretest.Session) error {
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
	return p.serveScript(wiretest.Answering(plugin, func(s *wiretest.Session, f *wiretest.Frame) error { return answer(s, f, right) }))
}

// serveScript serves sessions by hand.
func (p *Program) serveScript(script wiretest.Script) error {
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

// GRPCServer implements plugin.GRPCPlugin.
func (s *served) GRPCServer(_ *plugin.GRPCBroker, server *wire.Server) error {
	wiretest.Register(server, s.script)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *wire.ClientConn) (any, error) {
	return nil, errors.New("badplugin: not a client")
}
