package guard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// rooted is a reading with the directories that it begins at.
type rooted struct {
	reading
	roots  []string
	prints bool // the names, which other commands take
}

// readings returns what a command reads without naming it: all files below a directory.
func readings(c *shell.Command) []rooted {
	args, name := c.Args, c.Name()
	switch name {
	case "git":
		if at := slices.Index(args, "grep"); at > 0 {
			return searching(c, args[at:], true)
		}
		if shell.OneOf("ls-files --name-only", args...) && reads(c) {
			r := named(c)
			r.hidden, r.git, r.roots, r.only = true, true, []string{"."}, suffixes(args)
			return []rooted{r}
		}
	case "rg", "ripgrep", "ag", "ack", "ugrep":
		return searching(c, args, false)
	case "grep", "egrep", "fgrep", "zgrep":
		if has(args, "-r -R --recursive --dereference-recursive") || shell.OneOf("recurse --directories=recurse -drecurse", args...) {
			return searching(c, args, false)
		}
	case "find", "fd", "fdfind":
		return finding(c)
	case "xargs", "parallel":
		inner := fed(c)
		return readings(&inner)
	case "ls", "tree":
		if reads(c) {
			r := named(c)
			r.hidden, r.roots, r.whole = has(args, "-a -A --all --almost-all"), roots(operands(args)), has(args, "-d --directory")
			return []rooted{r}
		}
	}
	return all(args, packed(name, args), name)
}

func named(c *shell.Command) rooted {
	return rooted{prints: true, reading: reading{follow: true, how: c.Name() + " hands the names to a command that reads the files:"}}
}

// started is the command that xargs starts, without the words that it adds, and the text that stands for them.
func started(c *shell.Command) (args []string, stand string) {
	args = c.Args
	for range maxFiles {
		if len(args) == 0 || !shell.OneOf("xargs parallel", (&shell.Command{Args: args}).Name()) {
			return args, stand
		}
		at, options := usage(args).Split(args[1:])
		for _, o := range options {
			if o.Kind == 'I' {
				stand = o.Value
			}
		}
		if len(at) == 0 {
			return nil, ""
		}
		args, _, _ = shell.Unwrap(args[1+at[0]:])
	}
	return nil, ""
}

// fed is the command that xargs starts with the words that it reads; nothing if these are not plain to see.
func fed(c *shell.Command) shell.Command {
	items := strings.Fields(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(strings.Join(slices.Concat(c.Texts, c.Input), " ")))
	args, stand := started(c)
	if len(items) == 0 || len(args) == 0 {
		return shell.Command{}
	}
	at := slices.IndexFunc(args, func(arg string) bool { return stand != "" && strings.Contains(arg, stand) })
	args = append(slices.Clip(args), items...)
	if at > 0 {
		filled := slices.Clone(items)
		for i, item := range filled {
			if len(args[at])*len(filled) < shell.MaxBytes {
				filled[i] = strings.ReplaceAll(args[at], stand, item)
			}
		}
		args = slices.Replace(args, at, at+1, filled...)
	}
	return shell.Command{Args: args, Inside: c.Inside, Feeds: c.Feeds}
}

// below is how a command reads the directories that it is handed; nil if it reads none.
func below(args []string, c *shell.Command) *reading {
	args, _, _ = shell.Unwrap(args)
	inner := shell.Command{Args: args, Inside: c.Inside, Feeds: c.Feeds}
	switch {
	case len(args) == 0:
		return nil
	case shell.OneOf("find fd fdfind xargs parallel", inner.Name()):
		return &reading{hidden: true, follow: true, how: inner.Name() + " hands it to a command that reads it:"}
	}
	for _, at := range scripts(&inner) {
		commands, _ := shell.Read(strings.ReplaceAll(shell.Plain(args[at]), "{}", "$0")) // judge.script refuses what cannot be read
		if r := takers(commands); r != nil {
			return r
		}
	}
	inner.Args = append(slices.Clip(args), "{}", "{}") // one of them may be a target
	if list := readings(&inner); len(list) > 0 {
		return &list[0].reading
	}
	return nil
}

// takers is how the commands of a script read directories whose names they get from others; nil if they read none.
func takers(commands []shell.Command) *reading {
	var all *reading
	for i := range commands {
		c := &commands[i]
		words, _, _ := shell.Unwrap(c.Args)
		one := *c
		one.Args = words
		var r *reading
		if shell.OneOf("xargs parallel", one.Name()) {
			args, _ := started(&one)
			r = below(args, c)
		} else if slices.ContainsFunc(words, func(word string) bool { return shell.HasAny(word, string(shell.Unknown)) }) {
			for _, found := range readings(&one) {
				if slices.ContainsFunc(found.roots, func(root string) bool { return shell.HasAny(root, string(shell.Unknown)) }) {
					r = &found.reading
				}
			}
		}
		all = either(all, r)
	}
	return all
}

// either is the reading of one of two commands; nil stands for none.
func either(a, b *reading) *reading {
	if a != nil && b != nil {
		return &reading{hidden: true, follow: true, how: "a command that is handed the directory would read it:"}
	}
	return cmp.Or(a, b)
}

// suffixes are the globs of names behind --, if all words there are such globs.
func suffixes(args []string) []string {
	globs := plain(args[slices.Index(append(slices.Clip(args), "--"), "--"):])
	globs = globs[min(1, len(globs)):]
	if slices.ContainsFunc(globs, func(glob string) bool { return !strings.HasPrefix(glob, "*.") || strings.Contains(glob, "/") }) {
		return nil
	}
	return globs
}

const (
	clouds = "aws gsutil gcloud rclone s3cmd"
	// mirrors are the words with which they copy directories unasked.
	mirrors = "sync rsync copy"
)

// packers are the options with which programs read whole directories, to copy, pack or compare them.
//
//nolint:gochecknoglobals // immutable table
var packers = map[string]string{
	"cp": "-r -R -a --recursive --archive", "scp": "-r", "rsync": "-r -a --recursive --archive", "zip": "-r --recurse-paths", "diff": "-r --recursive",
	"tar": "-c -r -u --create --append --update", "bsdtar": "-c -r -u --create --append --update", "jar": "-c -u --create --update",
	"aws": "--recursive", "gsutil": "-r -R", "gcloud": "-r -R --recursive", "s3cmd": "-r --recursive",
}

// packed are the files and directories that a command copies, packs, compares or offers to others, with all that is in them.
func packed(name string, args []string) (list []string) {
	switch {
	case strings.HasPrefix(name, "python") && slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, "http.server") }):
		return []string{"."}
	case name == "kubectl" && slices.Contains(args, "create"):
		for i, arg := range args[1:] {
			if value, ok := strings.CutPrefix(arg, "--from-file="); ok || args[i] == "--from-file" {
				list = append(list, value[strings.IndexByte(value, '=')+1:])
			}
		}
	case packers[name] != "" && has(args, packers[name]), shell.OneOf(clouds, name) && shell.OneOf(mirrors, args...), name == "7z" && slices.Contains(args, "a"),
		shell.OneOf("tar bsdtar jar", name) && len(args) > 1 && args[1] != "" && args[1][0] != '-' && strings.ContainsAny(args[1], "cru"):
		list = operands(args)
	}
	if shell.OneOf("cp scp rsync "+clouds, name) { // the last one is the target
		list = list[:max(len(list)-1, 0)]
	}
	if shell.OneOf(clouds, name) {
		list = slices.DeleteFunc(list, func(word string) bool { return shell.OneOf("s3 storage cp mv "+mirrors, word) })
	}
	return list
}

func usage(args []string) *shell.Usage {
	return shell.UsageOf((&shell.Command{Args: args}).Name(), args)
}

// has reports whether a command has one of the options.
func has(args []string, options string) bool {
	u := usage(args)
	return shell.OneOf(options, u.Flags(u.Whole(args[1:]))...)
}

// operands are the words that are neither options nor the values of some.
func operands(args []string) []string {
	at, _ := usage(args).Split(args[1:])
	return wordsAt(args[1:], at)
}

func wordsAt(args []string, places []int) (list []string) {
	for _, at := range places {
		list = append(list, args[at])
	}
	return list
}

func roots(operands []string) []string {
	if len(operands) == 0 {
		return []string{"."}
	}
	return operands
}

// exceptions are the globs that options leave out.
func exceptions(args []string) (globs []string) {
	for i := range args {
		if glob, ok := excluded(args, i); ok {
			globs = append(globs, shell.Plain(glob))
		}
	}
	return globs
}

// excluded is the glob that a word leaves out, if it does.
func excluded(args []string, at int) (glob string, ok bool) {
	for _, head := range []string{"--exclude=", "--exclude-dir=", "--ignore=", "--glob=!", "-g!", ":!", ":^", ":(exclude)", "!"} {
		if glob, ok := strings.CutPrefix(args[at], head); ok && glob != "" {
			return glob, true
		}
	}
	before := args[max(at-1, 0)]
	return args[at], shell.OneOf("--exclude --exclude-dir --ignore --ignore-dir", before) || before == "-x" && args[0] == "zip"
}

func all(args, operands []string, name string) []rooted {
	if len(operands) == 0 {
		return nil
	}
	r := rooted{roots: operands, reading: reading{hidden: true, except: exceptions(args), how: name + " would take it along; leave it out with --exclude:"}}
	r.spares = shell.OneOf("tar bsdtar rsync", name)
	r.follow = dereferences(name, args)
	r.descend = r.follow
	if name == "zip" {
		r.how = "zip would take it along; leave it out with -x:"
	}
	return []rooted{r}
}

// dereferences reports whether a command that reads whole directories takes for a link what it leads to.
func dereferences(name string, args []string) bool {
	const long = " --dereference --dereference-recursive" // has takes the one for the other, cut short
	switch name {
	case "diff":
		return !has(args, "--no-dereference")
	case "tar", "bsdtar":
		return has(args, "-h -L"+long) || len(args) > 1 && !strings.HasPrefix(args[1], "-") && strings.ContainsAny(args[1], "hL")
	case "cp":
		return has(args, "-L"+long)
	case "rsync":
		return has(args, "-L -k --copy-links --copy-dirlinks --copy-unsafe-links")
	}
	return shell.OneOf("scp zip jar 7z", name) || strings.HasPrefix(name, "python")
}

// searching is what grep and its kin read.
func searching(c *shell.Command, args []string, git bool) []rooted {
	list := wordsAt(args[1:], usage(args).Candidates(args[1:]))
	grep := shell.OneOf("grep egrep fgrep zgrep", c.Name()) && !git
	if slices.Contains(args, "--files") || len(list) == 0 && c.Fed && !grep {
		return nil // it shows names, or reads what comes through the pipe
	}
	r := rooted{roots: roots(list), reading: reading{except: exceptions(args), how: args[0] + " would read it; leave it out with --exclude='.env*' (rg: -g '!.env*'):"}}
	r.only = included(args)
	r.hidden = grep || git || shell.OneOf("--hidden -. -uu -uuu", args...) || strings.Contains(strings.Join(args, " "), " -u -u")
	r.git = !grep && !has(args, "--no-ignore --no-ignore-vcs -u --unrestricted")
	r.spares = grep
	r.lenient, r.follow = !grep, has(args, "-R -L --dereference-recursive --follow")
	r.descend = r.follow
	return []rooted{r}
}

// included are the globs of names that a search is limited to; nil if it is not.
func included(args []string) []string {
	var globs []string
	for i, arg := range args {
		before := args[max(i-1, 0)]
		glob, ok := strings.CutPrefix(arg, "--include=")
		if !ok {
			glob, ok = strings.CutPrefix(arg, "--glob=")
		}
		if !ok && shell.OneOf("--include -g --glob --iglob", before) {
			glob, ok = arg, true
		}
		if ok && !strings.HasPrefix(glob, "!") {
			globs = append(globs, shell.Plain(glob))
		}
		if kind := strings.TrimPrefix(arg, "--type="); kind != arg || shell.OneOf("-t --type", before) {
			globs = append(globs, "*."+kind)
		}
	}
	return globs
}

// reads reports whether what a command prints is taken as names of files to read.
func reads(c *shell.Command) bool { return c.Inside || !filtered(c.Feeds) }

// finding is what the commands read that find and fd start, or hand names to.
func finding(c *shell.Command) (list []rooted) {
	r := reading{follow: true, hidden: true, how: "find hands it to a command that reads it:"}
	if c.Name() != "find" {
		args := c.Args
		if at := slices.IndexFunc(args, func(arg string) bool { return shell.OneOf("-x --exec -X --exec-batch", arg) }); at > 0 {
			args = args[:at]
		} else if !reads(c) {
			return nil
		}
		var list []string
		for i, at := range args[1:] {
			if at != "" && at[0] != '-' && !shell.OneOf("-t --type -e --extension -E --exclude -d --max-depth --min-depth -S --size -j --threads -c --color", args[i]) {
				list = append(list, at)
			}
		}
		r.hidden, r.git = shell.OneOf("-H --hidden -u", c.Args...), true
		if len(args) < len(c.Args) {
			r.below = below(c.Args[len(args)+1:], c)
		}
		return []rooted{{reading: r, roots: roots(list[min(1, len(list)):]), prints: len(args) == len(c.Args)}}
	}
	roots, actions := shell.Find(c.Args)
	links := shell.OneOf("-L -follow", c.Args...) // -type f is true of a link to a file
	r.descend = links
	for _, a := range actions {
		runs := strings.HasPrefix(a.Name, "-exec") || strings.HasPrefix(a.Name, "-ok")
		if !runs && !reads(c) || runs && len(a.Args) > 0 && shell.OneOf(lookers, a.Args[0]) {
			continue
		}
		only, except, files := shell.Limits(a.Tests)
		r.only, r.except, r.follow = plain(only), plain(except), !files || links
		r.below, r.whole = nil, !slices.Contains(c.Args, "-mindepth")
		if runs && !files {
			r.below = below(a.Args, c)
		}
		list = append(list, rooted{reading: r, roots: roots, prints: !runs && !files})
	}
	return list
}

func plain(globs []string) (list []string) {
	for _, glob := range globs {
		list = append(list, shell.Plain(glob))
	}
	return list
}

var (
	// filesSearch matches the names of tools that search in files, whatever their arguments are called.
	filesSearch = lazyregexp.New(`grep|_rg\b|^[ra]g$|^search$|^semantic_?search|codebase|code_|_code\b|(?:^|[^o])file|(?:^|_)fs_|folder|director|(?:^|_|search_?)(?:text|contents?)(?:_|search|$)`)
	// filesArgument matches the folded names of arguments that only a search in files has.
	filesArgument = lazyregexp.New(`(?:path|dir|folder|glob|pattern|(?:^|[^o])file)s?$|director(?:y|ies)$|regexp?$|^recursive$|^casesensitive$`)
)

// inFiles reports whether an argument, or one in it, is of a search in files.
func inFiles(n argument.Node) bool {
	return argument.UseOf(n.Key) >= argument.Pattern || filesArgument().MatchString(argument.Fold(n.Key)) || slices.ContainsFunc(n.Kids, inFiles)
}

// search judges a search by a tool of the agent's, which shows lines of all files below a directory. Others search the
// web, the agent's tools, a memory or something behind an MCP server.
func (j *judge) search(n argument.Node) *Finding {
	if argument.Fold(j.tool) == "readmanyfiles" && slices.ContainsFunc(n.Kids, func(kid argument.Node) bool { return argument.Fold(kid.Key) == "usedefaultexcludes" }) {
		return j.walk(".", &reading{git: true, hidden: true, how: "it would be read:"})
	}
	if !j.searches() || n.Kind != '{' || shell.OneOf("toolsearch websearch googlewebsearch", argument.Fold(j.tool)) || !filesSearch().MatchString(j.tool) && !inFiles(n) {
		return nil
	}
	mode, given := n.Member("outputmode")
	if given && mode != "content" || !given && j.tool == "grep" { // it shows names only
		return nil
	}
	r := reading{git: true, hidden: true, lenient: true, how: "the search would read it; leave it out (glob \"!.env*\"), or search a smaller directory:"}
	if glob, ok := n.Member("glob", "include", "includepattern"); ok {
		if rest, negated := strings.CutPrefix(glob, "!"); negated {
			r.except = []string{strings.Trim(rest, "{}")}
		} else {
			r.only = []string{pathBase(glob)}
		}
	}
	if exclude, ok := n.Member("exclude", "excludepattern"); ok {
		r.except = append(r.except, exclude)
	}
	dir, ok := n.Member("path", "dirpath", "directory", "dir", "folder")
	if !ok {
		dir = "."
	}
	return j.walk(dir, &r)
}

func pathBase(glob string) string {
	if i := strings.LastIndexByte(glob, '/'); i >= 0 {
		glob = glob[i+1:]
	}
	if strings.ContainsAny(glob, "{}") {
		return "*" // its names are many
	}
	return glob
}
