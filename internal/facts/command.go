package facts

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// script adds what a shell's text does.
func (f *finder) script(text, dir string, depth int) {
	if depth > maxDepth || !shell.Known(text) {
		f.unclear("a command inside a command is not known")
		return
	}
	commands, err := f.Read(text)
	if err != nil {
		f.unclear(err.Error())
	}
	if errors.Is(err, shell.ErrSyntax) && strings.TrimSpace(text) == "" {
		return
	}
	for i := range commands {
		f.command(&commands[i], dir, depth)
	}
}

// command adds what one command does, and those that it starts.
func (f *finder) command(c *shell.Command, dir string, depth int) {
	dir = f.within(dir, c.Dir)
	for _, name := range c.Files {
		if slices.Contains(c.Written, name) {
			f.file(&f.Writes, dir, name)
		} else {
			f.file(&f.Reads, dir, name)
		}
	}
	if c.Pseudo {
		f.variable(c.Sets, c.Args[1:], dir, depth)
		return
	}
	if len(c.Args) == 0 || c.Function {
		return
	}
	inner, sets, ok := shell.Unwrap(c.Args)
	if !ok || len(inner) > 1 && shell.Wraps((&shell.Command{Args: inner}).Name()) && strings.ContainsRune(strings.Join(inner, ""), shell.Unknown) {
		f.unclear("what " + c.Args[0] + " starts is not known")
		return
	}
	for _, set := range sets {
		name, value, _ := strings.Cut(set, "=")
		f.variable(name, []string{value}, dir, depth)
	}
	if c.Name() == "time" {
		w := words{finder: f, Command: c, Usage: shell.UsageOf("time", c.Args), dir: dir}
		w.split(c.Args[1:max(1, len(c.Args)-len(inner))])
	}
	one := *c
	one.Args = inner
	f.simple(&one, dir, depth)
}

// within follows a change of the directory, which is not known if it may fail.
func (f *finder) within(dir, change string) string {
	if change == "" {
		return dir
	}
	dir = shell.Join(dir, change)
	at, ok := f.Full("", dir)
	if made := func(c phases.Command) bool {
		return slices.Contains(c.Words[1:], filepath.Base(change)) || slices.Contains(c.Words[1:], change)
	}; ok && !f.IsDir(at) && !slices.ContainsFunc(f.Commands[:max(len(f.Commands)-1, 0)], made) {
		f.unclear("there is no directory " + change)
	}
	return dir
}

// These variables are commands that programs run, or change what a shell and others do.
var (
	commandVariable = lazyregexp.New(`^(?:\w+_)?(?:PAGER|EDITOR|VISUAL|BROWSER|SHELL|SSH_COMMAND|ASKPASS|RSH)$|^PROMPT_COMMAND$|^(?:CC|CXX|CPP|LD|AR|FC|RUSTC|RUSTC_WRAPPER)$|^LESSOPEN$|^LESSCLOSE$`)
	proxyVariable   = lazyregexp.New(`(?i)^(?:https?|ftp|all)_proxy$`)
	hiddenVariable  = lazyregexp.New(`^(?:LD|DYLD)_|^(?:BASH_)?ENV$|^PS[0-4]$|^(?:HOME|PWD|OLDPWD|CDPATH|SHELLOPTS|BASHOPTS|GLOBIGNORE|BASH_ALIASES|BASH_CMDS|PYTHONSTARTUP|PYTHONINSPECT|PERL5OPT|PERL5DB|RUBYOPT|ZDOTDIR|BASH_FUNC_.*|GIT_CONFIG.*|GIT_DIR|GIT_WORK_TREE|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|GIT_EXEC_PATH|GCONV_PATH)$`)
)

func (f *finder) variable(name string, values []string, dir string, depth int) {
	switch {
	case hiddenVariable().MatchString(name), name == "NODE_OPTIONS" && strings.Contains(strings.Join(values, " "), "r"):
		f.unclear("what " + name + " makes programs do is not known")
	case name == "GOFLAGS" && strings.Contains(strings.Join(values, " "), "exec"):
		f.unclear("what GOFLAGS makes go run is not known")
	case proxyVariable().MatchString(name):
		for _, value := range values {
			(&words{finder: f, Command: &shell.Command{}, Usage: &shell.Usage{}, dir: dir}).address(value)
		}
	case strings.HasPrefix(name, "GIT_TRACE") && strings.HasPrefix(strings.Join(values, ""), "/"):
		f.file(&f.Writes, dir, strings.Join(values, ""))
	case commandVariable().MatchString(name):
		for _, value := range values {
			f.script(value, dir, depth+1)
		}
	}
}

// simple adds what a command does that starts with its program's name.
func (f *finder) simple(c *shell.Command, dir string, depth int) {
	for _, word := range c.Args {
		f.text += len(word)
	}
	if len(f.Commands) >= maxCommands || f.text > maxText {
		f.unclear("there are too many commands")
		return
	}
	name := c.Name()
	if c.Args[0] == "" || strings.ContainsAny(c.Args[0], wildcards+string(shell.Unknown)) || c.Args[0][0] == '=' {
		f.unclear("the name of a command is not known: " + c.Args[0])
		name = ""
	}
	u := shell.UsageOf(name, c.Args)
	said := make([]string, len(c.Args))
	for i, word := range c.Args {
		said[i] = strings.ToValidUTF8(shell.Plain(word), "\uFFFD")
	}
	c.Args = u.Whole(c.Args)
	f.Commands = append(f.Commands, phases.Command{Program: name, Options: u.Flags(c.Args[1:]), Words: said})
	w := words{finder: f, Usage: u, Command: c, dir: dir, depth: depth, name: name}
	w.all()
}
