package guard

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
)

// scope is what is known of a value from the objects around it.
type scope struct {
	use  argument.Use
	dirs []string
}

// node judges a value and all that is in it.
func (j *judge) node(n argument.Node, s scope) *Finding {
	switch n.Kind {
	case '"':
		return j.text(n.Text, s)
	case '[':
		if s.use == argument.Command && argument.Texts(n) != nil {
			return j.argv(argument.Texts(n), s)
		}
	case '{':
		for _, args := range n.Commands() {
			if f := j.argv(args, s); f != nil {
				return f
			}
		}
		for _, kid := range n.Kids {
			if kid.Kind == '"' && argument.UseOf(kid.Key) == argument.Dir {
				s.dirs = append(slices.Clip(s.dirs), kid.Text)
			}
		}
	}
	for _, kid := range n.Kids {
		inner := s
		if n.Kind == '{' && s.use != argument.Content {
			inner.use = argument.UseOf(kid.Key)
		}
		if f := j.node(kid, inner); f != nil {
			return f
		}
		if n.Kind == '{' && inner.use == argument.Word { // maps from files to something
			if f := j.word(kid.Key, s.dirs); f != nil && strings.ContainsAny(kid.Key, "./") {
				return f
			}
		}
	}
	return nil
}

// text judges one text by what it is for.
func (j *judge) text(text string, s scope) *Finding {
	for _, name := range argument.Patched(text) {
		if f := j.file(name, s.dirs); f != nil {
			return f
		}
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case s.use == argument.Content, s.use == argument.Exclude, strings.HasPrefix(trimmed, "*** Begin Patch"), trimmed == "":
		return nil
	case s.use == argument.Pattern && j.searches(), s.use == argument.Glob && strings.HasPrefix(text, "!"):
		return nil
	case s.use == argument.Pattern, s.use == argument.Glob:
		return j.meant(text, s.dirs)
	}
	if strings.IndexByte("{[", trimmed[0]) >= 0 {
		if inner, err := argument.Decode(json.RawMessage(trimmed)); err == nil {
			return j.node(inner, scope{dirs: s.dirs, use: s.use})
		}
	}
	if s.use != argument.Command || !strings.ContainsAny(trimmed, " \t") {
		if f := j.file(text, s.dirs); f != nil {
			return f
		}
	}
	if s.use == argument.Dir || s.use == argument.Word && !strings.ContainsAny(trimmed, " \t\n") {
		return j.word(text, s.dirs)
	}
	return j.script(text, s.dirs, maxScripts)
}
