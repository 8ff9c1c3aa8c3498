package guard

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// rooted is a reading with the directories that it begins at.
type rooted struct {
	reading
	roots []string
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
	case "ls", "tree":
		if reads(c) {
			r := named(c)
			r.hidden, r.roots = has(args, "-a -A --all --almost-all"), roots(operands(args))
			return []rooted{r}
		}
	}
	return all(args, packed(name, args), name)
}

func named(c *shell.Command) rooted {
	return rooted{reading: reading{follow: true, how: c.Name() + " hands the names to a command that reads the files:"}}
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
	if name == "zip" {
		r.follow, r.how = true, "zip would take it along; leave it out with -x:"
	}
	return []rooted{r}
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
		list := operands(args)
		r.hidden, r.git = shell.OneOf("-H --hidden -u", c.Args...), true
		return []rooted{{reading: r, roots: roots(list[min(1, len(list)):])}}
	}
	roots, actions := shell.Find(c.Args)
	links := shell.OneOf("-L -follow", c.Args...) // -type f is true of a link to a file
	for _, a := range actions {
		runs := strings.HasPrefix(a.Name, "-exec") || strings.HasPrefix(a.Name, "-ok")
		if !runs && !reads(c) || runs && len(a.Args) > 0 && shell.OneOf(lookers, a.Args[0]) {
			continue
		}
		only, except, files := shell.Limits(a.Tests)
		r.only, r.except, r.follow = plain(only), plain(except), !files || links
		list = append(list, rooted{reading: r, roots: roots})
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
