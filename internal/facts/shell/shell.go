// Package shell reads a shell command without running it: which commands it runs, with which words, files and texts, as
// far as that can be known from the text alone.
//
// It is a pure function of the text and errs on the side of saying too much: branches are all taken, a variable has all
// the values that it was given, and what cannot be known becomes the wildcard [Unknown]. Start reading at [Read].
package shell

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Wildcards in words, from the private use area, so that they differ from what was quoted.
const (
	Star    = '\uE000' // any letters of a name
	Any     = '\uE001' // one letter of a name
	Unknown = '\uE002' // any text at all
)

// Bounds of one command.
const (
	MaxBytes = 64 << 10 // the parser's stack grows with the depth of a command, of which this is a bound
	maxSteps = 20_000   // words that are looked at
	maxAlts  = 32       // values of one word
	maxValue = 4 << 10  // bytes of a value that is put together
	maxDepth = 200      // brackets that are open
)

// The errors of [Read].
var (
	ErrTooLong    = errors.New("the command is longer than 64 KiB")
	ErrTooComplex = errors.New("the command is too complex to be judged")
	ErrSyntax     = errors.New("the command cannot be parsed")
)

// Command is one simple command.
type Command struct {
	// Args are the words, the name first. A word of several values is as many words.
	Args []string
	// Files are the targets of redirections.
	Files []string
	// Texts are the bodies of here-documents and here-strings.
	Texts []string
	// Dir is the directory, relative to where the command begins unless it is absolute or begins with ~. It begins with
	// [Unknown] if it cannot be known.
	Dir string
	// Feeds are the names of the commands that its output is piped into.
	Feeds []string
	// Fed says that its input comes out of a pipe.
	Fed bool
	// Inside says that its output becomes part of another command.
	Inside bool
}

// Name is the command's name without its directory.
func (c *Command) Name() string {
	if len(c.Args) == 0 {
		return ""
	}
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(c.Args[0], `\`, "/")), ".exe")
}

// Read returns the simple commands of a script, in order. With [ErrSyntax] these are the ones before the error: a shell runs
// them before it gets there.
func Read(script string) ([]Command, error) {
	if len(script) > MaxBytes {
		return nil, ErrTooLong
	}
	if depth(script) > maxDepth {
		return nil, ErrTooComplex
	}
	script = strings.NewReplacer(string(Star), "\uFFFD", string(Any), "\uFFFD", string(Unknown), "\uFFFD", "\x00", "").Replace(script)
	file, err := parse(script, syntax.LangBash)
	if err != nil {
		if other, wrong := parse(script, syntax.LangZsh); wrong == nil {
			file, err = other, nil
		}
	}
	r := &reader{vars: map[string][]string{"HOME": {"~"}, "PWD": {"."}, "IFS": {" "}}}
	r.stmts(file.Stmts, flow{})
	if r.steps > maxSteps {
		return nil, ErrTooComplex
	}
	if err != nil {
		return r.commands, errors.Join(ErrSyntax, err)
	}
	return r.commands, nil
}

func parse(script string, lang syntax.LangVariant) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(script), "")
}

// depth is how many brackets are open at once, quoted or not.
func depth(script string) int {
	open, most := 0, 0
	for i := range len(script) {
		switch script[i] {
		case '(', '{':
			open++
			most = max(most, open)
		case ')', '}':
			open = max(open-1, 0)
		}
	}
	return most
}

// flow is where a statement's input comes from and its output goes.
type flow struct {
	feeds       []string
	fed, inside bool
}

type reader struct {
	commands []Command
	vars     map[string][]string
	dir      string
	steps    int
}

// step counts work, and reports whether there may be more of it.
func (r *reader) step() bool {
	r.steps++
	return r.steps <= maxSteps
}

func (r *reader) stmts(list []*syntax.Stmt, f flow) {
	for _, s := range list {
		r.stmt(s, f)
	}
}

func (r *reader) stmt(s *syntax.Stmt, f flow) {
	if s == nil || !r.step() {
		return
	}
	files, texts := r.redirects(s.Redirs)
	at := len(r.commands)
	r.command(s.Cmd, f)
	if len(files)+len(texts) == 0 {
		return
	}
	if _, simple := s.Cmd.(*syntax.CallExpr); !simple || at == len(r.commands) {
		r.add(Command{}, f) // of a loop, or "< file" alone
	}
	last := &r.commands[len(r.commands)-1]
	last.Files, last.Texts = append(last.Files, files...), append(last.Texts, texts...)
}

func (r *reader) redirects(list []*syntax.Redirect) (files, texts []string) {
	for _, redirect := range list {
		switch {
		case redirect.Hdoc != nil:
			texts = append(texts, r.parts(redirect.Hdoc.Parts, true)...)
		case redirect.Op == syntax.WordHdoc:
			texts = append(texts, r.word(redirect.Word)...)
		case redirect.Word != nil:
			files = append(files, r.word(redirect.Word)...)
		}
	}
	return files, texts
}

func (r *reader) add(c Command, f flow) {
	c.Dir, c.Feeds, c.Fed, c.Inside = r.dir, f.feeds, f.fed, f.inside
	r.commands = append(r.commands, c)
}

// command reads one command of any kind.
func (r *reader) command(cmd syntax.Command, f flow) {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		r.call(cmd, f)
	case *syntax.BinaryCmd:
		r.binary(cmd, f)
	case *syntax.Subshell:
		r.apart(func() { r.stmts(cmd.Stmts, f) })
	case *syntax.Block:
		r.stmts(cmd.Stmts, f)
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			r.stmts(c.Cond, f)
			r.stmts(c.Then, f)
		}
	case *syntax.WhileClause:
		r.stmts(cmd.Cond, f)
		r.stmts(cmd.Do, f)
	case *syntax.ForClause:
		if items, ok := cmd.Loop.(*syntax.WordIter); ok {
			values := r.words(items.Items)
			r.set(items.Name.Value, values)
			r.add(Command{Args: append([]string{"for"}, values...)}, flow{})
		}
		r.stmts(cmd.Do, f)
	case *syntax.CaseClause:
		r.nested(cmd.Word)
		for _, item := range cmd.Items {
			r.stmts(item.Stmts, f)
		}
	case *syntax.FuncDecl:
		r.stmt(cmd.Body, f)
	case *syntax.TimeClause:
		r.stmt(cmd.Stmt, f)
	case *syntax.CoprocClause:
		r.stmt(cmd.Stmt, f)
	case *syntax.DeclClause:
		r.assigns(cmd.Args, f)
	case nil:
	default: // tests and arithmetic read files only by what is substituted in them
		r.nested(cmd)
	}
}

// nested reads the commands that are substituted in a part of the script.
func (r *reader) nested(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			r.apart(func() { r.stmts(n.Stmts, flow{inside: true}) })
			return false
		case *syntax.ProcSubst:
			r.apart(func() { r.stmts(n.Stmts, flow{inside: true}) })
			return false
		}
		return true
	})
}

// apart reads what runs in a shell of its own, whose directory ends with it.
func (r *reader) apart(read func()) {
	dir := r.dir
	read()
	r.dir = dir
}

func (r *reader) binary(cmd *syntax.BinaryCmd, f flow) {
	if cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll {
		r.stmt(cmd.X, f)
		r.stmt(cmd.Y, f)
		return
	}
	right := f
	right.fed = true
	left := f
	left.feeds = append(slices.Clone(f.feeds), names(cmd.Y)...)
	r.apart(func() { r.stmt(cmd.X, left) })
	r.apart(func() { r.stmt(cmd.Y, right) })
}

// names are the names of the simple commands in a statement, as they are written.
func names(s *syntax.Stmt) []string {
	var list []string
	syntax.Walk(s, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 && len(list) < maxAlts {
			for _, w := range call.Args[:min(2, len(call.Args))] { // behind sudo and env too
				if name := path.Base(w.Lit()); !strings.HasPrefix(name, "-") {
					list = append(list, name)
					if !Wraps(name) {
						break
					}
				}
			}
		}
		return true
	})
	return list
}

// Wraps reports whether a command runs the one that follows it.
func Wraps(name string) bool {
	return slices.Contains([]string{
		"sudo", "doas", "env", "nohup", "time", "nice", "ionice", "timeout", "gtimeout", "command", "exec", "builtin", "stdbuf", "setsid", "busybox", "noglob",
	}, name)
}

func (r *reader) call(call *syntax.CallExpr, f flow) {
	r.assigns(call.Assigns, f)
	if len(call.Args) == 0 {
		return
	}
	c := Command{Args: r.words(call.Args)}
	r.add(c, f)
	switch c.Name() {
	case "cd", "pushd", "chdir":
		r.change(c.Args[1:])
	case "popd":
		r.dir = string(Unknown)
	case "read", "mapfile", "readarray":
		for _, arg := range c.Args[1:] {
			r.set(arg, []string{string(Unknown)})
		}
	}
}

// change follows cd.
func (r *reader) change(args []string) {
	target := "~"
	for _, arg := range args {
		if arg == "-" {
			target = string(Unknown)
		} else if !strings.HasPrefix(arg, "-") {
			target = arg
			break
		}
	}
	r.dir = Join(r.dir, target)
}

// Join is a path in a directory, both as a [Command] has them.
func Join(dir, name string) string {
	switch {
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, "~"), strings.HasPrefix(name, string(Unknown)), dir == "":
		return name
	case name == "" || name == ".":
		return dir
	}
	return dir + "/" + name
}

// assigns keeps the values of variables, and reports each as a word of the command "=".
func (r *reader) assigns(list []*syntax.Assign, f flow) {
	for _, a := range list {
		var values []string
		switch {
		case a.Value != nil:
			values = r.word(a.Value)
		case a.Array != nil:
			for _, elem := range a.Array.Elems {
				if elem.Value != nil {
					values = append(values, r.word(elem.Value)...)
				}
			}
		}
		if a.Name != nil && !a.Naked {
			if a.Append {
				values = product(r.vars[a.Name.Value], values)
			}
			r.set(a.Name.Value, values)
		}
		if len(values) > 0 {
			r.add(Command{Args: append([]string{"="}, values...)}, flow{inside: f.inside})
		}
	}
}

func (r *reader) set(name string, values []string) {
	r.vars[name] = values[:min(len(values), maxAlts)]
}
