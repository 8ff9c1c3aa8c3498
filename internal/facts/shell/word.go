package shell

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// words returns all values of words, braces expanded.
func (r *reader) words(list []*syntax.Word) []string {
	all := make([]string, 0, len(list))
	for _, w := range list {
		for _, value := range r.word(w) {
			if strings.ContainsRune(value, gap) {
				all = append(all, split(value)...)
			} else {
				all = append(all, value)
			}
		}
	}
	return all
}

// texts returns the values of a word that is not split.
func (r *reader) texts(w *syntax.Word) []string {
	all := r.word(w)
	for i, value := range all {
		all[i] = strings.ReplaceAll(value, string(gap), "")
	}
	return all
}

// split returns the words that a value falls apart into: at letters with a gap before them.
func split(value string) []string {
	parts := strings.Split(value, string(gap))
	if len(parts) == 1 {
		return parts
	}
	var all []string
	for i, part := range parts {
		if i > 0 {
			_, size := utf8.DecodeRuneInString(part)
			part = part[size:]
		}
		if part != "" {
			all = append(all, part)
		}
	}
	return all
}

// open marks what a shell does with a value that is not in quotes: it is split, and wildcards count.
func (r *reader) open(values []string, quoted bool) []string {
	separators := strings.Join(r.vars["IFS"], "")
	if quoted {
		return values
	}
	opened := make([]string, len(values))
	for i, value := range values {
		if strings.ContainsAny(value, separators) {
			var b strings.Builder
			for _, letter := range value {
				if strings.ContainsRune(separators, letter) {
					b.WriteRune(gap)
				}
				b.WriteRune(letter)
			}
			value = b.String()
		}
		opened[i] = globs(strings.ReplaceAll(value, `\`, `\\`))
	}
	return opened
}

// braces reports whether a word may be several because of braces.
func braces(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return ok && strings.Contains(lit.Value, "{")
	})
}

// word returns the values of one word, with an unknown text for braces that make too many.
func (r *reader) word(w *syntax.Word) []string {
	if w == nil {
		return nil
	}
	if !braces(w) {
		r.step()
		return r.parts(w.Parts, false)
	}
	return r.braced(w)
}

// braced returns the values of a word that may be several because of braces.
func (r *reader) braced(w *syntax.Word) []string {
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	syntax.SplitBraces(split)
	if len(split.Parts) > maxAlts {
		return append(r.between(split), r.parts(split.Parts, false)...)
	}
	var all []string
	for one, err := range expand.BracesSeq(nil, split) {
		if err != nil || len(all) >= 4*maxAlts || !r.step() {
			return append(r.between(split), r.parts(split.Parts, false)...)
		}
		all = append(all, r.parts(one.Parts, false)...)
	}
	return all
}

// between returns the words between the braces of a word, each by itself.
func (r *reader) between(w *syntax.Word) []string {
	var all []string
	for _, part := range w.Parts {
		if b, ok := part.(*syntax.BraceExp); ok && r.step() {
			for _, elem := range b.Elems {
				all = append(append(all, r.parts(elem.Parts, false)...), r.between(elem)...)
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
		after = []string{unknown}
	}
	all := make([]string, 0, len(before)*len(after))
	for _, b := range before {
		for _, a := range after {
			if len(b)+len(a) > maxValue {
				a = unknown
			}
			all = append(all, b+a)
		}
	}
	return all
}

func (r *reader) parts(parts []syntax.WordPart, quoted bool) []string {
	if len(parts) == 1 && r.step() { // as most words are
		switch part := parts[0].(type) {
		case *syntax.DblQuoted:
			return r.parts(part.Parts, true)
		case *syntax.Lit:
			if len(part.Value) <= maxValue {
				return r.part(part, quoted)
			}
		}
	}
	values := []string{""}
	for _, part := range parts {
		if !r.step() {
			return []string{unknown}
		}
		if lit, ok := part.(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "[") && strings.HasSuffix(values[0], "://") {
			values = product(values, []string{"["}) // of an address, which is not the name of a file
			part = &syntax.Lit{Value: lit.Value[1:]}
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
		return r.open(r.param(part), quoted)
	case *syntax.CmdSubst:
		return r.open(r.output(part.Stmts), quoted)
	case *syntax.ProcSubst:
		r.made = append(r.made, r.process(part)...)
		return []string{"/dev/fd/63"}
	}
	if _, braces := part.(*syntax.BraceExp); !braces {
		r.nested(part)
	}
	return []string{unknown}
}

// param returns the values of a parameter, and of what stands in for it.
func (r *reader) param(p *syntax.ParamExp) []string {
	var values []string
	if p.Param != nil && !r.opaque {
		values = r.vars[p.Param.Value]
	}
	simple := !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Slice == nil && p.Repl == nil && p.NestedParam == nil && p.Flags == nil &&
		len(p.Modifiers) == 0 && p.Names == 0
	if p.Slice != nil {
		r.nested(p)
	} else if p.Index != nil {
		r.nested(p.Index)
	}
	if p.Repl != nil {
		r.nested(p.Repl.Orig)
		r.loose(p.Repl.With)
	}
	if p.Exp != nil {
		return r.alternative(p, values)
	}
	if !simple || len(values) == 0 {
		return []string{unknown}
	}
	return values
}

// alternative returns the values of a parameter with an operator behind it.
func (r *reader) alternative(p *syntax.ParamExp, values []string) []string {
	other := r.word(p.Exp.Word)
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		r.loose(p.Exp.Word)
		return append([]string{""}, other...)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil && len(values) == 0 {
			if name := p.Param.Value; strings.ToUpper(name) == name { // of the environment
				other = append(other, unknown)
			}
			r.set(p.Param.Value, other)
		}
		r.loose(p.Exp.Word)
		return append(append([]string{}, values...), other...)
	case syntax.OtherParamOps:
		if p.Exp.Word.Lit() == "P" { // a prompt, in which commands are run
			r.unclear()
		}
	default: // a part of the value
	}
	return []string{unknown}
}

func (r *reader) loose(w *syntax.Word) {
	if values := r.texts(w); len(values) > 0 {
		r.add(Command{Args: append([]string{"="}, values...), Pseudo: true}, flow{})
	}
}

// output returns what commands print, if that is plain to see.
func (r *reader) output(stmts []*syntax.Stmt) []string {
	at := len(r.commands)
	r.apart(func() { r.stmts(stmts, flow{inside: true}) })
	if made := r.commands[at:]; len(made) == 1 && r.dir == "" && r.vars["GIT_DIR"] == nil && r.vars["GIT_WORK_TREE"] == nil && !made[0].Function &&
		slices.Equal(made[0].Args, []string{"git", "rev-parse", "--show-toplevel"}) {
		return []string{Top}
	}
	if texts := printed(r.commands[at:]); texts != nil {
		for i, text := range texts {
			texts[i] = strings.TrimRight(text, "\n")
		}
		return texts
	}
	return []string{unknown}
}

// printed returns what commands print, if that is plain to see: the words of echo and printf, a here-document or the
// input of cat, and what base64 decodes.
func printed(made []Command) []string {
	if len(made) == 0 {
		return nil
	}
	c := &made[len(made)-1]
	alone := len(made) == 1 && len(c.Files) == 0
	texts := slices.Concat(c.Texts, c.Input)
	piped := len(texts) == 1 && len(c.Files) == 0 && (len(made) == 1 || len(c.Input) > 0)
	switch name := c.Name(); {
	case alone && !c.Pseudo && (name == "echo" || name == "printf"):
		if text, ok := echoed(c.Args); ok {
			return []string{text}
		}
	case piped && name == "cat" && len(c.Args) == 1:
		return slices.Clone(texts)
	case piped && name == "base64" && len(c.Args) == 2 && OneOf("-d -D --decode", c.Args[1]):
		if data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(texts[0]), "")); err == nil {
			return []string{string(data)}
		}
	}
	return nil
}

// echoed returns what echo or printf prints; it is not known if escapes or formats make it.
func echoed(args []string) (string, bool) {
	name, args := args[0], args[1:]
	end := "\n"
	if name == "printf" {
		if end = ""; len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) > 1 && strings.Trim(args[0], `%s\n `) == "" {
			args = args[1:]
		}
	} else {
		for len(args) > 0 && (args[0] == "-n" || args[0] == "-e" || args[0] == "-E" || args[0] == "-en" || args[0] == "-ne") {
			args = args[1:]
		}
	}
	text := strings.Join(args, " ")
	plain := strings.TrimSuffix(text, `\n`)
	return plain + end, !strings.Contains(plain, `\`) && (name == "echo" || !strings.Contains(plain, "%"))
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
			for class := true; class; i++ {
				i += 1 + strings.IndexByte(s[i+1:], ']')
				class = strings.HasSuffix(s[:i], ":") && strings.IndexByte(s[i+1:], ']') >= 0 // of [[:alpha:]]
			}
			i--
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
