// Package shell reads a shell command without running it: which commands it runs, with which words, files and texts, as
// far as that can be known from the text alone.
//
// It is a pure function of the text and errs on the side of saying too much: branches are all taken, a variable has all
// the values that it may have been given, and what cannot be known becomes the wildcard [Unknown]. What may run and cannot
// be read is a command whose name is [Unknown]. Start reading at [Read].
package shell

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Wildcards in words, from the private use area, so that they differ from what was quoted.
const (
	Star    = '\uE000' // any letters of a name
	Any     = '\uE001' // one letter of a name
	Unknown = '\uE002' // any text at all
	gap     = '\uE003' // precedes a letter that separates words; only while a word is read
	top     = '\uE004'
)

const (
	unknown = string(Unknown)
	// Top begins paths in the project's directory, as git says where it is. Like everything that begins with ~, it is not
	// joined to another directory.
	Top = "~" + string(top)
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
	// Files are the targets of redirections, and Written those of them that are written.
	Files, Written []string
	// Texts are the bodies of here-documents and here-strings, and what <( ) prints.
	Texts []string
	// Input are the texts that come out of the pipe, if they are plain to see.
	Input []string
	// Dir is the directory, relative to where the command begins unless it is absolute or begins with ~. It begins with
	// [Unknown] if it cannot be known.
	Dir string
	// Feeds are the names of the commands that its output is piped into.
	Feeds []string
	// Fed says that its input comes out of a pipe.
	Fed bool
	// Inside says that its output becomes part of another command.
	Inside bool
	// Pseudo says that nothing runs: behind "=" stand the values that the variable Sets is given, behind "for" the items
	// of a loop.
	Pseudo bool
	Sets   string
	// Function says that the script has a function of this name, which is what runs.
	Function bool
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
	strange := strings.Contains(script, "\\\r") // an escaped letter for a shell, nothing for the parser
	script = marks.Replace(script)
	file, err := parse(script, syntax.LangBash)
	r := &reader{vars: map[string][]string{"HOME": {"~"}, "PWD": {"."}, "IFS": {" \t\n"}}}
	if err != nil {
		if other, wrong := parse(script, syntax.LangZsh); wrong == nil {
			file, err = other, nil
			strange = true // a word may run commands in ways of its own
		}
	}
	r.stmts(file.Stmts, flow{})
	if r.again && r.steps <= maxSteps { // with the values that variables are given further down
		r.commands, r.functions, r.dir, r.steps, r.branch = r.commands[:0], nil, "", 0, 1
		r.stmts(file.Stmts, flow{})
	}
	if strange {
		r.unclear()
	}
	if r.steps > maxSteps {
		return nil, ErrTooComplex
	}
	if err != nil {
		return r.commands, errors.Join(ErrSyntax, err)
	}
	return r.commands, nil
}

//nolint:gochecknoglobals // constants
var (
	globMarks = strings.NewReplacer(string(Star), "*", string(Any), "?")
	plain     = strings.NewReplacer(string(Star), "*", string(Any), "?", unknown, "…", Top, "…")
	marks     = strings.NewReplacer(string(Star), "\uFFFD", string(Any), "\uFFFD", unknown, "\uFFFD", string(gap), "\uFFFD", string(top), "\uFFFD", "\x00", "", "\\\r", "\\\uFFFD")
)

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
	feeds, input []string
	fed, inside  bool
}

type reader struct {
	commands  []Command
	vars      map[string][]string
	functions map[string]string // with the directory that a function was read in; replaced, never changed
	made      []string          // texts of the files that the words of a command are
	dir       string
	steps     int
	branch    int  // how many things around may not run, or run apart
	again     bool // there are variables that get values in another order than that of the text
	opaque    bool // variables are set in ways that cannot be read
}

// unclear reports that something may run that cannot be read.
func (r *reader) unclear() { r.add(Command{Args: []string{unknown}}, flow{}) }

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
	files, written, texts := r.redirects(s.Redirs)
	at := len(r.commands)
	r.command(s.Cmd, f)
	if len(files)+len(texts) == 0 {
		return
	}
	if _, simple := s.Cmd.(*syntax.CallExpr); !simple || at == len(r.commands) {
		r.add(Command{}, f) // of a loop, or "< file" alone
	}
	last := &r.commands[len(r.commands)-1]
	if name := last.Name(); name == "read" || name == "mapfile" || name == "readarray" {
		defer r.evaluated(texts...)
	}
	last.Files, last.Written, last.Texts = append(last.Files, files...), append(last.Written, written...), append(last.Texts, texts...)
}

func (r *reader) redirects(list []*syntax.Redirect) (files, written, texts []string) {
	for _, redirect := range list {
		switch op := redirect.Op; {
		case redirect.Hdoc != nil:
			texts = append(texts, r.parts(redirect.Hdoc.Parts, true)...)
		case op == syntax.WordHdoc:
			texts = append(texts, r.texts(redirect.Word)...)
		case redirect.Word != nil:
			names := r.texts(redirect.Word)
			if op == syntax.DplIn || op == syntax.DplOut {
				names = slices.DeleteFunc(names, func(name string) bool { return strings.Trim(name, "0123456789-") == "" }) // a descriptor
			}
			files = append(files, names...)
			if op != syntax.RdrIn && op != syntax.DplIn {
				written = append(written, names...)
			}
		}
	}
	return files, written, texts
}

func (r *reader) add(c Command, f flow) {
	c.Dir, c.Feeds, c.Input, c.Fed, c.Inside = r.dir, f.feeds, f.input, f.fed, f.inside
	r.steps += len(r.dir) / 32 // long words are work for those who look at them
	for _, arg := range c.Args {
		r.steps += len(arg) / 32
	}
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
		r.stmts(cmd.Cond, f)
		branches := []func(){func() { r.stmts(cmd.Then, f) }}
		for c := cmd.Else; c != nil; c = c.Else {
			branches = append(branches, func() { r.stmts(append(slices.Clip(c.Cond), c.Then...), f) })
		}
		r.branches(branches...)
	case *syntax.WhileClause:
		r.loop(cmd, func() {
			r.stmts(cmd.Cond, f)
			r.stmts(cmd.Do, f)
		})
	case *syntax.ForClause:
		if items, ok := cmd.Loop.(*syntax.WordIter); ok {
			values := r.words(items.Items)
			r.evaluated(values...)
			r.set(items.Name.Value, values)
			r.add(Command{Args: append([]string{"for"}, values...), Pseudo: true}, flow{})
		} else {
			r.nested(cmd.Loop)
		}
		r.loop(cmd, func() { r.stmts(cmd.Do, f) })
	case *syntax.CaseClause:
		r.nested(cmd.Word)
		var branches []func()
		for _, item := range cmd.Items {
			for _, pattern := range item.Patterns {
				r.nested(pattern)
			}
			branches = append(branches, func() { r.stmts(item.Stmts, f) })
		}
		r.branches(branches...)
	case *syntax.FuncDecl:
		r.function(cmd, f)
	case *syntax.TimeClause:
		r.stmt(cmd.Stmt, f)
	case *syntax.CoprocClause:
		r.apart(func() { r.stmt(cmd.Stmt, f) })
	case *syntax.DeclClause:
		r.declare(cmd, f)
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
			r.process(n)
			return false
		case *syntax.Word:
			r.evaluated("a[" + strings.Join(r.texts(n), "\n")) // it may be an index itself
			return false
		case *syntax.ExtGlob:
			if strings.ContainsAny(n.Pattern.Value, "$`") {
				r.unclear()
			}
		}
		return true
	})
}

// evaluated looks at texts that arithmetic, tests and builtins may take for an element of an array, whose index is expanded.
func (r *reader) evaluated(texts ...string) {
	if slices.ContainsFunc(texts, index().MatchString) {
		r.unclear()
	}
}

var index = lazyregexp.New("(?s)\\w\\[.*(?:\\$[({[]|`)")

// process reads <( ) and >( ), and returns the text of the file that it stands for.
func (r *reader) process(p *syntax.ProcSubst) []string {
	if p.Op == syntax.CmdIn {
		return r.output(p.Stmts)
	}
	r.apart(func() { r.stmts(p.Stmts, flow{fed: true}) })
	return nil
}

// apart reads what runs in a shell of its own, whose directory and functions end with it.
func (r *reader) apart(read func()) {
	dir, functions := r.dir, r.functions
	r.branch++
	read()
	r.branch--
	r.dir, r.functions = dir, functions
}

// branches reads what may run or not, each from where it begins.
func (r *reader) branches(list ...func()) {
	dir, functions := r.dir, r.functions
	after := dir
	r.branch++
	for _, read := range list {
		r.dir = dir
		if read(); r.dir != dir {
			after = unknown
		}
	}
	r.branch--
	r.dir, r.functions = after, functions
}

// loop reads what may run again where it ended.
func (r *reader) loop(node syntax.Node, read func()) {
	r.again = r.again || len(r.vars) > 3
	if r.moves(node) {
		r.dir = unknown
	}
	r.branches(read)
}

// moves reports whether a part of the script changes its directory.
func (r *reader) moves(node syntax.Node) (found bool) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if found || !r.step() {
			return false
		}
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			name := call.Args[0].Lit()
			found = name == "" || OneOf("cd pushd popd chdir builtin command eval source .", name)
		}
		_, apart := n.(*syntax.Subshell)
		return !apart
	})
	return found
}

// function reads the body of a function, which runs where the function is called.
func (r *reader) function(decl *syntax.FuncDecl, f flow) {
	dir := r.dir
	r.again = true
	r.branches(func() { r.stmt(decl.Body, f) })
	functions := map[string]string{}
	maps.Copy(functions, r.functions)
	r.steps += len(functions) / 8
	for _, name := range append(decl.Names, decl.Name) {
		if name != nil {
			functions[name.Value] = r.dir
		}
	}
	r.dir, r.functions = dir, functions
}

func (r *reader) binary(cmd *syntax.BinaryCmd, f flow) {
	if cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll {
		if first := r.chain(cmd, f); first != r.dir {
			r.dir = unknown // of which commands ran, nothing is known
		}
		return
	}
	right := f
	right.fed = true
	left := f
	left.feeds = append(slices.Clone(f.feeds), r.names(cmd.Y)...)
	r.steps += len(left.feeds) / 8
	at := len(r.commands)
	r.apart(func() { r.stmt(cmd.X, left) })
	right.input = printed(r.commands[at:])
	r.apart(func() { r.stmt(cmd.Y, right) })
}

// chain reads commands with && and || between them, each as if those before it had done what they should, and returns
// the directory behind the first one.
func (r *reader) chain(cmd *syntax.BinaryCmd, f flow) (first string) {
	before := r.dir
	if x, ok := cmd.X.Cmd.(*syntax.BinaryCmd); ok && len(cmd.X.Redirs) == 0 && (x.Op == syntax.AndStmt || x.Op == syntax.OrStmt) {
		first = r.chain(x, f)
	} else {
		r.stmt(cmd.X, f)
		first = r.dir
	}
	r.branch++
	defer func() { r.branch-- }()
	if cmd.Op == syntax.AndStmt {
		r.stmt(cmd.Y, f)
		return first
	}
	after := r.dir
	if r.dir != before {
		r.dir = unknown
	}
	at := r.dir
	if r.stmt(cmd.Y, f); r.dir == at {
		r.dir = after
	}
	return first
}

// names are the names of the simple commands in a statement, as they are written.
func (r *reader) names(s *syntax.Stmt) []string {
	var list []string
	syntax.Walk(s, func(n syntax.Node) bool {
		if len(list) >= maxAlts || n != nil && !r.step() {
			return false
		}
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
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

func (r *reader) call(call *syntax.CallExpr, f flow) {
	if len(call.Args) == 0 {
		r.assigns(call.Assigns, f)
		return
	}
	r.branch++ // the values hold for this command
	r.assigns(call.Assigns, f)
	r.branch--
	made := r.made
	r.made = nil
	names, rest := r.word(call.Args[0]), r.words(call.Args[1:])
	texts := r.made
	r.made = made
	if len(names) > 1 && braces(call.Args[0]) {
		names = []string{strings.Join(names, string(gap)+" ")}
	}
	for _, name := range names {
		r.simple(Command{Args: append(split(name), rest...), Texts: texts}, f)
	}
}

// simple reads a command whose words are known.
func (r *reader) simple(c Command, f flow) {
	if len(c.Args) == 0 {
		r.unclear()
		return
	}
	dir, called := r.functions[c.Args[0]]
	c.Function = called
	r.add(c, f)
	if called {
		r.evaluated(c.Args[1:]...)
	}
	if called && dir != r.dir {
		r.unclear()
		r.dir = unknown
	}
	if !called {
		r.builtin(c.Args)
	}
}

// builtin follows the commands that change the shell itself.
func (r *reader) builtin(args []string) {
	for len(args) > 1 && (args[0] == "builtin" || args[0] == "command") {
		args = args[1:]
	}
	name := (&Command{Args: args}).Name()
	if OneOf("test [ read mapfile readarray getopts set unset let declare typeset local export readonly", name) ||
		OneOf("printf wait", name) && len(args) > 1 && strings.HasPrefix(args[1], "-") {
		r.evaluated(args...)
	}
	switch name {
	case "cd", "pushd", "chdir":
		r.change(args)
	case "popd":
		r.dir = unknown
	case "unset":
		r.functions = nil
	case "eval", "source", ".":
		if Activates(args) {
			return
		}
		r.opaque, r.again, r.dir = true, true, unknown
	case "read", "mapfile", "readarray", "getopts":
		for _, arg := range args[1:] {
			r.set(arg, []string{unknown})
		}
	case "printf", "wait":
		for i, arg := range args[:len(args)-1] {
			if strings.HasPrefix(arg, "-v") || strings.HasPrefix(arg, "-p") {
				r.set(arg[2:], []string{unknown})
				r.set(args[i+1], []string{unknown})
			}
		}
	}
}

// Activates reports whether a command only has a shell use the programs of a directory, as Python's environments do.
func Activates(args []string) bool {
	return len(args) == 2 && (args[0] == "source" || args[0] == ".") && strings.HasSuffix(args[1], "env/bin/activate")
}

// change follows cd, which takes .. for what stands before it.
func (r *reader) change(args []string) {
	target := "~"
	if args[0] == "pushd" {
		target = unknown
	}
	given := slices.DeleteFunc(slices.Clone(args[1:]), func(arg string) bool { return len(arg) > 1 && arg[0] == '-' })
	if len(given) == 1 {
		target = given[0]
	}
	switch {
	case len(given) > 1, target == "-", strings.HasPrefix(target, "+"), strings.ContainsAny(target, unknown+string(Star)+string(Any)):
		r.dir = unknown
	default:
		if r.dir = Join(r.dir, target); !strings.HasPrefix(r.dir, "~") && !strings.HasPrefix(r.dir, unknown) {
			r.dir = path.Clean(r.dir)
		}
	}
}

// Join is a path in a directory, both as a [Command] has them.
func Join(dir, name string) string {
	switch {
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, "~"), strings.HasPrefix(name, unknown), dir == "":
		return name
	case name == "" || name == ".":
		return dir
	}
	return dir + "/" + name
}

// declare reads declare, local, export and the like.
func (r *reader) declare(decl *syntax.DeclClause, f flow) {
	for _, a := range decl.Args {
		if option := a.Value; a.Naked && option != nil && strings.HasPrefix(option.Lit(), "-") && strings.Contains(option.Lit(), "n") || decl.Variant.Value == "nameref" {
			r.opaque, r.again = true, true // another name for a variable
		}
	}
	r.assigns(decl.Args, f)
}

// assigns keeps the values of variables, and reports each as a word of the command "=".
func (r *reader) assigns(list []*syntax.Assign, f flow) {
	for _, a := range list {
		if a.Index != nil {
			r.nested(a.Index)
		}
		values := r.values(a)
		r.evaluated(values...)
		name := ""
		if a.Name != nil && !a.Naked {
			name = a.Name.Value
			if a.Append {
				values = append(product(r.vars[name], values), values...)
			}
			r.set(name, values)
		} else if len(values) == 1 { // export "name=value"
			if word, value, ok := strings.Cut(values[0], "="); ok {
				name, values = word, []string{value}
				r.set(name, values)
			}
		}
		if len(values) > 0 {
			r.add(Command{Args: append([]string{"="}, values...), Pseudo: true, Sets: name}, flow{inside: f.inside})
		}
	}
}

func (r *reader) values(a *syntax.Assign) []string {
	var values []string
	switch {
	case a.Value != nil:
		for _, value := range r.texts(a.Value) {
			values = append(values, globMarks.Replace(value))
		}
	case a.Array != nil:
		for _, elem := range a.Array.Elems {
			if elem.Index != nil {
				r.nested(elem.Index)
			}
			if elem.Value != nil {
				values = append(values, r.words([]*syntax.Word{elem.Value})...)
			}
		}
	}
	return values
}

// set gives a variable values: others than before if that is sure, otherwise more.
func (r *reader) set(name string, values []string) {
	if r.branch > 0 {
		values = append(slices.Clone(r.vars[name]), values...)
		slices.Sort(values)
		values = slices.Compact(values)
	}
	if len(values) > maxAlts {
		values = append(values[:maxAlts-1:maxAlts-1], unknown)
	}
	r.vars[name] = values
}
