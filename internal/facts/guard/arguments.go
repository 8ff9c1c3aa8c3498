package guard

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// arguments judges a value and all that is in it.
func (j *judge) arguments(root argument.Node) (f *Finding) {
	root.Walk(func(t argument.Text) bool {
		var dirs []string
		for _, dir := range t.Dirs {
			dirs = append(dirs, dir.Text)
		}
		switch {
		case f != nil:
		case t.Args != nil:
			f = j.command(&shell.Command{Args: t.Args}, dirs, maxScripts)
		case t.Use == argument.Name:
			f = j.word(t.Text, dirs)
		default:
			f = j.text(t.Text, t.Use, dirs)
		}
		return true
	})
	return f
}

// text judges one text by what it is for.
func (j *judge) text(text string, use argument.Use, dirs []string) *Finding {
	for _, name := range argument.Patched(text) {
		if f := j.file(name, dirs); f != nil {
			return f
		}
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case use == argument.Content, use == argument.Exclude, strings.HasPrefix(trimmed, "*** Begin Patch"), trimmed == "":
		return nil
	case use == argument.Pattern && j.searches(), use == argument.Glob && strings.HasPrefix(text, "!"):
		return nil
	case use == argument.Pattern, use == argument.Glob:
		return j.meant(text, dirs)
	}
	if use != argument.Command || !strings.ContainsAny(trimmed, " \t") {
		if f := j.file(text, dirs); f != nil {
			return f
		}
	}
	if use == argument.Dir || use == argument.Word && !strings.ContainsAny(trimmed, " \t\n") {
		return j.word(text, dirs)
	}
	return j.script(text, dirs, maxScripts)
}
