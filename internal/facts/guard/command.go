package guard

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// script judges a text that a shell runs.
func (j *judge) script(text string, dirs []string, depth int) *Finding {
	if depth == 0 {
		return &Finding{How: "a command inside a command inside a command cannot be judged: run it by itself"}
	}
	commands, err := j.Read(text)
	broken := errors.Is(err, shell.ErrSyntax) // another shell's, or a program
	if err != nil && !broken {
		return &Finding{How: err.Error() + ": write long texts with the tool for files, and split the command"}
	}
	j.renames = j.renames || slices.ContainsFunc(commands, func(c shell.Command) bool { return changesNames(&c) })
	j.taker = either(j.taker, takers(commands))
	for i := range commands {
		if f := j.command(&commands[i], dirs, depth); f != nil {
			return f
		}
	}
	if !broken {
		return nil
	}
	bare := strings.ReplaceAll(text, `\`, "")
	if f := j.tokens(bare, dirs); f != nil {
		return f
	}
	return j.tokens(strings.NewReplacer(`'`, "", `"`, "").Replace(bare), dirs)
}

const (
	shells = "sh bash zsh dash ksh ash fish pwsh powershell cmd"
	// runners take a command, or a part of one, as words.
	runners = "eval ssh su runuser watch parallel xargs script flock docker podman kubectl tmux screen nsenter chroot unshare at trap alias entr"
	// filters read what they are given, and no files by the names in it.
	filters = "cat tee grep egrep fgrep rg wc sort uniq head tail sed tr cut jq yq less more column fold nl gh glab pbcopy xclip base64 md5sum sha256sum true diff :"
	// lookers show no file's content: a glob that matches protected names beside others does no harm.
	lookers = "ls stat du rm rmdir chmod chown touch test [ wc echo printf basename dirname mkdir type which"
	// Listers show names and sizes of files.
	Listers = "ls stat du"
	greps   = "grep egrep fgrep zgrep rg ripgrep ag ack ugrep"
)

// command judges one simple command.
func (j *judge) command(c *shell.Command, dirs []string, depth int) *Finding {
	if c.Dir != "" {
		inner := inDirs(dirs, c.Dir)
		dirs = append(slices.Clip(inner[1:]), c.Dir)
	}
	words, _, _ := shell.Unwrap(c.Args)
	one := *c
	one.Args = words
	dirs = append(slices.Clip(dirs), changed(words)...)
	for _, file := range c.Files {
		if f := cmp.Or(j.word(file, dirs), j.expandIn(file, dirs)); f != nil {
			return f
		}
	}
	if f := cmp.Or(j.bodies(&one, dirs, depth), j.words(&one, c.Args, dirs), j.inner(&one, dirs, depth)); f != nil {
		return f
	}
	for _, r := range readings(&one) {
		if r.prints {
			r.below = j.taker
		}
		for _, root := range r.roots {
			for _, full := range inDirs(dirs, root) {
				if len(dirs) > 0 && full == root && !strings.HasPrefix(root, "/") && !strings.HasPrefix(root, "~") {
					continue
				}
				if f := j.walk(full, &r.reading); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

// changed are the directories that options make a command work in.
func changed(args []string) []string {
	var dirs []string
	for i, arg := range args[min(1, len(args)):] {
		if shell.OneOf("-C --directory --chdir --cwd --prefix", args[i]) {
			dirs = append(dirs, arg)
		} else if dir, ok := strings.CutPrefix(arg, "--directory="); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// expandIn judges what a shell would put in the place of a word with wildcards, in each of the directories.
func (j *judge) expandIn(word string, dirs []string) (f *Finding) {
	if !shell.HasAny(word, wildcards) {
		return nil
	}
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	for _, d := range dirs {
		f = cmp.Or(f, j.expand(d, word))
	}
	return f
}

// words judges the words of a command, but for those that only are text to it.
func (j *judge) words(c *shell.Command, all, dirs []string) *Finding {
	harmless := j.harmless(c)
	looks := shell.OneOf(lookers, c.Name()) && filtered(c.Feeds)
	for i, word := range all {
		var f *Finding
		switch at := i - (len(all) - len(c.Args)); {
		case at >= 0 && harmless[at]:
		case c.Args[0] == "=" && !shell.HasAny(word, wildcards): // a value is judged where it is used
			f = j.file(word, dirs)
		case c.Args[0] == "=", looks:
			f = j.word(word, dirs)
		default:
			f = cmp.Or(j.word(word, dirs), j.expandIn(word, dirs))
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// lists reports whether a command only shows names and sizes of files, and no command behind it opens them.
func (j *judge) lists(c *shell.Command) bool {
	reads := func(arg string) bool { // as options of du do
		return strings.HasPrefix(arg, "--f") || strings.HasPrefix(arg, "--exc") || strings.HasPrefix(arg, "-") && strings.Contains(arg, "X")
	}
	known := len(c.Args) > 0 && shell.OneOf(Listers, c.Args[0]) && !c.Function && !j.renames
	passed := !slices.ContainsFunc(c.Feeds, func(name string) bool {
		return !shell.OneOf("head tail wc sort uniq grep egrep fgrep cut tr cat column nl less more", name)
	})
	return known && !c.Inside && passed && (c.Args[0] != "du" || !slices.ContainsFunc(c.Args, reads))
}

// changesNames reports whether a command gives names of commands another meaning, or takes files by the names that it is fed.
func changesNames(c *shell.Command) bool {
	return c.Sets == "PATH" || shell.OneOf("alias hash", c.Name()) || slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--fil") })
}

// filtered reports whether all commands behind a pipe only read what comes through it.
func filtered(feeds []string) bool {
	return !slices.ContainsFunc(feeds, func(name string) bool { return !shell.OneOf(filters, name) })
}

// harmless says which words of a command are text to it, and never the name of a file whose content it reads.
func (j *judge) harmless(c *shell.Command) []bool {
	skip := make([]bool, len(c.Args))
	name := c.Name()
	encoded := slices.ContainsFunc(c.Feeds, func(n string) bool { return shell.OneOf("base64 openssl", n) })
	printed := shell.OneOf("echo printf", name) && (c.Inside || filtered(c.Feeds)) && !encoded
	if printed || j.lists(c) || shell.OneOf("test [", name) || name == "git" && gitCommand(c.Args) == "check-ignore" {
		for i := range c.Args {
			skip[i] = true
		}
	}
	if at := pattern(name, c.Args); at > 0 {
		skip[at] = true
	}
	for _, at := range scripts(c) { // they are judged as such
		skip[at] = true
	}
	for i := 1; i < len(c.Args); i++ {
		negated := i > 1 && shell.OneOf("! -not", c.Args[i-2]) && shell.OneOf("-name -iname -path -ipath", c.Args[i-1])
		if negated || text(name, c.Args, i) {
			skip[i] = true
		}
	}
	return skip
}

// pattern is the place of the word that a search looks for, or of a filter's program; 0 if there is none.
func pattern(name string, args []string) int {
	from := 0
	if name == "git" {
		name, from = "grep", slices.Index(args, "grep")
	}
	if from < 0 || !shell.OneOf(greps+" jq gojq yq", name) {
		return 0
	}
	u, words := shell.UsageOf(name, args[from:]), args[from+1:]
	all, _ := u.Split(words)
	if len(all) == len(u.Candidates(words)) || name == "yq" && strings.Contains(words[all[0]], "load") {
		return 0
	}
	return from + 1 + all[0]
}

// text reports whether a word is a message, a pattern to look for, or what is to be left out.
func text(name string, args []string, at int) bool {
	before, word := args[at-1], args[at]
	if _, ok := excluded(args, at); ok && (!strings.HasPrefix(word, "!") || shell.OneOf(greps, name)) {
		return true
	}
	switch {
	case shell.OneOf(greps, name):
		return shell.OneOf("-e --regexp", before)
	case name == "git":
		command := gitCommand(args)
		if shell.OneOf("commit tag merge stash notes revert", command) {
			return shell.OneOf("-m -am --message", before) || strings.HasPrefix(word, "--message=") || strings.HasPrefix(word, "-m") || strings.HasPrefix(word, "-am")
		}
		return command == "grep" && before == "-e" || command != "grep" && shell.OneOf("--grep -S -G", before)
	case shell.OneOf("gh glab", name):
		return shell.OneOf("-t --title -b --body -n --notes --description -d -m --message", before) ||
			strings.HasPrefix(word, "--title=") || strings.HasPrefix(word, "--body=")
	}
	return false
}

// gitCommand is what git is told to do.
func gitCommand(args []string) string {
	for i := 1; i < len(args); i++ {
		switch {
		case shell.OneOf("-C -c --git-dir --work-tree --namespace", args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// bodies judges here-documents: as a script where a shell reads them, as text where they are only written somewhere.
func (j *judge) bodies(c *shell.Command, dirs []string, depth int) *Finding {
	name := c.Name()
	for _, body := range c.Texts {
		var f *Finding
		switch {
		case shell.OneOf("base64 openssl", name):
			f = j.word(strings.TrimSpace(body), dirs)
		case shell.OneOf(shells, name), slices.ContainsFunc(c.Feeds, func(n string) bool { return shell.OneOf(shells, n) }):
			f = j.script(body, dirs, depth-1)
		case (shell.OneOf(filters+" apply_patch patch", name) || name == "git" && !shell.OneOf("cat-file hash-object", gitCommand(c.Args))) && filtered(c.Feeds):
			for _, file := range argument.Patched(body) {
				f = cmp.Or(f, j.file(file, dirs))
			}
		default:
			f = j.tokens(body, dirs)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// inner judges the commands that are words of a command.
func (j *judge) inner(c *shell.Command, dirs []string, depth int) *Finding {
	name := c.Name()
	var list []string
	for _, at := range scripts(c) {
		list = append(list, shell.Plain(c.Args[at]))
	}
	piped := slices.ContainsFunc(c.Feeds, func(n string) bool { return shell.OneOf(shells, n) })
	switch {
	case name == "eval", piped && shell.OneOf("echo printf", name):
		list = append(list, shell.Plain(strings.Join(c.Args[1:], " ")))
	case shell.OneOf(runners+" source . "+shells, name):
		for _, arg := range c.Args[1:] {
			if strings.ContainsAny(arg, " \t\n") {
				list = append(list, shell.Plain(arg))
			}
		}
	}
	for _, script := range list {
		if f := j.script(script, dirs, depth-1); f != nil {
			return f
		}
	}
	return nil
}

// scripts are the places of the words that a shell runs: those behind its option -c.
func scripts(c *shell.Command) []int {
	if shell.OneOf(filters, c.Name()) {
		return nil
	}
	var list []int
	found := false
	for i, arg := range c.Args {
		option := len(arg) > 1 && arg[0] == '-' && strings.Contains(strings.ToLower(arg), "c") || strings.EqualFold(arg, "/c")
		if found && option && i+1 < len(c.Args) {
			list = append(list, i+1)
			found = false
		}
		found = found || shell.OneOf(shells, (&shell.Command{Args: []string{arg}}).Name())
	}
	return list
}
