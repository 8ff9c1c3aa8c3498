package compiler

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// fromHost is a text that the host may bring, or the built-in one.
func fromHost(pick func(*HostTexts) string, builtin string) func(*compilation, *section) {
	return func(c *compilation, s *section) { s.hostOr(pick(&c.in.Host), builtin) }
}

// hostOr sets the host's text, or else ours, which needs no limit.
func (s *section) hostOr(host, builtin string) {
	if host == "" {
		s.final = builtin
		return
	}
	s.Owner, s.raw = phases.OwnerHost, host
}

// fromFile is a text of the runtime home, which the loader has read.
func fromFile(name, note string, pick func(*HostTexts) string) func(*compilation, *section) {
	return func(c *compilation, s *section) {
		s.raw = pick(&c.in.Host)
		s.note = note
		s.pool = &c.files
		s.file = name
		s.SourceRefs = []phases.SourceRef{{Kind: "file", ID: name, Label: name}}
	}
}

func toolRecovery(c *compilation, s *section) {
	h := &c.in.Host
	if h.ToolRecovery || h.ToolRecoveryPolicy != "" {
		s.hostOr(h.ToolRecoveryPolicy, builtinToolRecovery)
	}
}

func taskOrchestration(c *compilation, s *section) {
	h := &c.in.Host
	if h.TaskTools || h.TaskOrchestration != "" {
		s.hostOr(h.TaskOrchestration, builtinTaskOrchestration)
	}
}

// dynamicContext joins the contexts of hooks, which merge has cut, and the
// host's own text, which is cut here.
func dynamicContext(c *compilation, s *section) {
	var texts []string
	for i := range c.in.Contexts {
		e := &c.in.Contexts[i]
		content := trim(guard(e.Content))
		if !e.Render || content == "" {
			continue
		}
		texts = append(texts, content)
		s.SourceRefs = append(s.SourceRefs, e.SourceRefs...)
		chars := text.Chars(content)
		t := phases.Truncation{Original: chars, Kept: chars}
		if e.Truncation != nil {
			t = *e.Truncation
		}
		s.cuts = append(s.cuts, t)
	}
	s.final = strings.Join(texts, join)
	s.raw = c.in.Host.DynamicContext
}

// facts lists what is known about where and when.
func facts(c *compilation, s *section) {
	f := &c.in.Facts
	var lines []string
	for _, l := range []struct{ name, value string }{
		{"Date", f.Date}, {"Time zone", f.TimeZone}, {"Operating system", f.OS}, {"Time", f.Time},
	} {
		if v := oneLine(l.value); v != "" {
			lines = append(lines, l.name+": "+v)
		}
	}
	s.final = strings.Join(lines, "\n")
}
