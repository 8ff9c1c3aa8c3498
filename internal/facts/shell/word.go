package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// words returns all values of words, braces expanded.
func (r *reader) words(list []*syntax.Word) []string {
	var all []string
	for _, w := range list {
		all = append(all, r.word(w)...)
	}
	return all
}

// word returns the values of one word, with an unknown text for braces that make too many.
func (r *reader) word(w *syntax.Word) []string {
	if w == nil {
		return nil
	}
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	syntax.SplitBraces(split)
	if len(split.Parts) > maxAlts {
		return append(r.braces(split), r.parts(split.Parts, false)...)
	}
	var all []string
	for one, err := range expand.BracesSeq(nil, split) {
		if err != nil || len(all) >= 4*maxAlts || !r.step() {
			return append(r.braces(split), r.parts(split.Parts, false)...)
		}
		all = append(all, r.parts(one.Parts, false)...)
	}
	return all
}

// braces returns the words between the braces of a word, each by itself.
func (r *reader) braces(w *syntax.Word) []string {
	var all []string
	for _, part := range w.Parts {
		if b, ok := part.(*syntax.BraceExp); ok && r.step() {
			for _, elem := range b.Elems {
				all = append(append(all, r.parts(elem.Parts, false)...), r.braces(elem)...)
			}
		}
	}
	return all
}

// product joins each text with each; a result that would be too long ends in what is unknown.
func product(before, after []string) []string {
	switch {
	case len(before) == 0:
		return after
	case len(after) == 0:
		return before
	case len(before)*len(after) > maxAlts:
		after = []string{string(Unknown)}
	}
	var all []string
	for _, b := range before {
		for _, a := range after {
			if len(b)+len(a) > maxValue {
				a = string(Unknown)
			}
			all = append(all, b+a)
		}
	}
	return all
}

func (r *reader) parts(parts []syntax.WordPart, quoted bool) []string {
	values := []string{""}
	for _, part := range parts {
		if !r.step() {
			return []string{string(Unknown)}
		}
		values = product(values, r.part(part, quoted))
	}
	return values
}

func (r *reader) part(part syntax.WordPart, quoted bool) []string {
	switch part := part.(type) {
	case *syntax.Lit:
		if quoted {
			return []string{unescape(part.Value, "$`\"\\\n")}
		}
		return []string{globs(part.Value)}
	case *syntax.SglQuoted:
		if part.Dollar {
			if text, _, err := expand.Format(nil, part.Value, nil); err == nil {
				return []string{text}
			}
		}
		return []string{part.Value}
	case *syntax.DblQuoted:
		return r.parts(part.Parts, true)
	case *syntax.ParamExp:
		return r.param(part)
	case *syntax.CmdSubst:
		return r.output(part.Stmts)
	case *syntax.ProcSubst: // a file with that text
		return r.output(part.Stmts)
	}
	if _, braces := part.(*syntax.BraceExp); !braces {
		r.nested(part)
	}
	return []string{string(Unknown)}
}

// param returns the values of a parameter, and of what stands in for it.
func (r *reader) param(p *syntax.ParamExp) []string {
	var values []string
	if p.Param != nil {
		values = r.vars[p.Param.Value]
	}
	simple := !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Slice == nil && p.Repl == nil && p.NestedParam == nil && p.Flags == nil &&
		len(p.Modifiers) == 0 && p.Names == 0
	if p.Repl != nil {
		r.loose(p.Repl.With)
	}
	if p.Exp != nil {
		other := r.word(p.Exp.Word)
		switch p.Exp.Op {
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if p.Param != nil && len(values) == 0 {
				r.set(p.Param.Value, other)
			}
			r.loose(p.Exp.Word)
			return append(append([]string{}, values...), other...)
		default:
			simple = false
		}
	}
	if !simple || len(values) == 0 {
		return []string{string(Unknown)}
	}
	return values
}

func (r *reader) loose(w *syntax.Word) {
	if values := r.word(w); len(values) > 0 {
		r.add(Command{Args: append([]string{"="}, values...)}, flow{})
	}
}

// output returns what commands print, if that is plain to see: the words of echo and printf, and a here-document of
// cat.
func (r *reader) output(stmts []*syntax.Stmt) []string {
	at := len(r.commands)
	r.apart(func() { r.stmts(stmts, flow{inside: true}) })
	if made := r.commands[at:]; len(made) == 1 {
		switch c := &made[0]; {
		case (c.Name() == "echo" || c.Name() == "printf") && len(c.Files) == 0:
			args := c.Args[1:]
			for len(args) > 0 && strings.HasPrefix(args[0], "-") {
				args = args[1:]
			}
			return []string{strings.TrimSuffix(strings.Join(args, " "), `\n`)}
		case c.Name() == "cat" && len(c.Args) == 1 && len(c.Texts) == 1 && len(c.Files) == 0:
			return c.Texts
		}
	}
	return []string{string(Unknown)}
}

// unescape drops the backslashes before the given letters; before any, if none are given.
func unescape(s, before string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (before == "" || strings.IndexByte(before, s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// globs unescapes an unquoted text and puts the wildcards in.
func globs(s string) string {
	if !strings.ContainsAny(s, `\*?[`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			if i++; s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case c == '*':
			b.WriteRune(Star)
		case c == '?':
			b.WriteRune(Any)
		case c == '[' && strings.IndexByte(s[i+1:], ']') > 0:
			b.WriteRune(Any)
			i += 1 + strings.IndexByte(s[i+1:], ']')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
