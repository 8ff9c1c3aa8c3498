package facts

import (
	"regexp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

const (
	// elsewhere run commands on another machine, in a container, later, or by a template.
	elsewhere = "parallel watch su runuser script at batch crontab screen tmux entr nsenter chroot unshare bwrap firejail systemd-run flock strace ltrace gdb valgrind perf expect proxychains proxychains4 torsocks setpriv runcon start-stop-daemon daemonize pexec rush sem rsh rlogin"
	// within, behind the name of a program, start the words that follow.
	within = "uv:run poetry:run pipenv:run bundle:exec pdm:run hatch:run rye:run conda:run npm:exec npm:x pnpm:exec yarn:exec mise:exec direnv:exec dotenv:run dotenvx:run rbenv:exec pyenv:exec"
)

// starts adds the commands that a command starts, as far as they can be read.
func (w *words) starts() {
	switch name, args := w.name, w.Args[1:]; {
	case w.Operands == "shell":
		w.shell()
	case w.builtin(name, args):
	case shell.OneOf("apply_patch applypatch", name):
		w.patch(slices.Concat(args, w.Texts, w.Input))
	case w.Operands == "command":
		w.xargs()
	case shell.OneOf("l L", w.Operands):
		w.language()
	case shell.OneOf(elsewhere, name), shell.OneOf("docker podman kubectl nerdctl", name) && len(args) > 0 && (slices.Contains(args, "exec") || slices.Contains(args, "run")):
		w.unclear("what " + name + " runs is not known")
	case shell.OneOf("fd fdfind", name) && slices.ContainsFunc(args, func(a string) bool { return shell.OneOf("-x --exec -X --exec-batch", a) }):
		w.unclear("what fd runs is not known")
	default:
		w.inner()
	}
}

// builtin adds what builtins of a shell run; false if it is none of those.
func (w *words) builtin(name string, args []string) bool {
	switch {
	case name == "eval":
		w.script(strings.Join(args, " "), w.dir, w.depth+1)
	case shell.OneOf("source .", name) && len(args) > 0:
		w.file(&w.Reads, w.dir, args[0])
		if !shell.Activates(w.Args) || len(w.Writes) > 0 {
			w.runs(args[0])
		}
	case name == "trap" && len(w.operand) > 1:
		w.script(w.operand[0], w.dir, w.depth+1)
	case shell.OneOf("compgen mapfile readarray", name) && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "CWF") }):
		w.unclear("what an option of " + name + " runs is not known")
	case name == "alias" && len(args) > 0, name == "enable", name == "complete", name == "bind", name == "fc", name == "history" && len(args) > 0:
		w.unclear(name + " gives names another meaning")
	case name == "shopt" && slices.ContainsFunc(args, func(a string) bool { return shell.OneOf("dotglob nocaseglob globstar expand_aliases", a) }):
		w.unclear("what shopt changes in the words that follow is not known")
	default:
		return false
	}
	return true
}

// codes are the words, by program, that are code of another language, or have programs run that stand in a file.
//
//nolint:gochecknoglobals // immutable table
var codes = map[string]func() *regexp.Regexp{
	"git": lazyregexp.New(`(?i)(?:^|[\n=])(?:alias\.|include(?:if)?\.|core\.(?:pager|worktree|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|attributesfile|excludesfile)|pager\.|diff\.|difftool\.|merge\.|mergetool\.|filter\.|credential\.|sequence\.|gpg\.|interactive\.|uploadpack\.|sendemail\.|protocol\.|remote\..*(?:pack|vcs)|url\.|browser\.|man\.|web\.|init\.|submodule\.|--exec|--config-env|--upload-pack|--receive-pack|-O|--open-files-in-pager|--ext-diff|--no-index|--textconv)` +
		`|(?:^|\n)ext::|^git\n(?:-\S+\n)*(?:filter-branch|fast-export|difftool|mergetool|daemon|shell|for-each-repo|instaweb|send-email)\n?|\n(?:rebase\n(?:\S+\n)*-[a-z]*x|bisect\nrun|submodule\n(?:-\S+\n)*foreach|bisect\nvisualize)`),
	"make":    lazyregexp.New(`\n(?:-[a-z]*f-?\n?(?:-|/dev/)|(?:SHELL|MAKEFLAGS|MAKEFILES|\.SHELLFLAGS)=|\w+=(?:[^\n]*[;&|\x60$<>(#]|[^-\s][^\n]*[ \t]))|\n--file=?\n?-`),
	"sqlite3": lazyregexp.New(`\n\s*\.(?:sh(?:e|\b)|sy|re|i(?:m|\b)|o|b(?:ac|\b)|sa|l(?:o|\b)|exc|c(?:l|d?\b)|ar|ed|www?\b)|(?i:\battach\b|vacuum\b[^;]*\binto\b)|readfile|writefile|edit\(|load_extension`),
	"psql":    lazyregexp.New(`\\[!ioewg]|(?i)copy|pg_read|lo_(?:im|ex)port`),
	"mysql":   lazyregexp.New(`\\!|(?i)system|source|load_file|outfile|infile`),
	"rg":      lazyregexp.New(`\n--(?:pre|hostname-bin|pager)`),
	"yq":      lazyregexp.New(`load(?:_\w+)?\s*\(`),
	"ssh":     lazyregexp.New(`\n-[a-zA-Z]*[oFJ]`),
}

//nolint:gochecknoglobals // immutable table
var aliases = map[string]string{"gawk": "awk", "mawk": "awk", "nawk": "awk", "original-awk": "awk", "gmake": "make", "mariadb": "mysql"}

// plainSed matches scripts of sed that neither read or write a file nor run a command.
var plainSed = lazyregexp.New(strings.NewReplacer("ADDR", `(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\[\n]|\\[^\n]|\[\^?(?:[^\]\\/\n]|\\[^\]\n])+\])*/[IM]*)`, "SUBST", substitutions(`/|#,@!:~%+`)).
	Replace(`^(?:[\s;]*(?:ADDR(?:\s*,\s*(?:ADDR|[+~][0-9]+))?\s*!?\s*)?(?:SUBST|[dDgGhHlnNpPxz={}]|[qQ][0-9]*|[btT][ \t]*[\w.-]*|:[ \t]*[\w.-]+|#[^\n]*|[aic](?:[^\\\n]|\\[^\n])*(?:\\\n(?:[^\\\n]|\\[^\n])*)*))*[\s;]*$`))

// substitutions matches the commands s and y with each of the delimiters.
func substitutions(delimiters string) string {
	var list []string
	for _, d := range delimiters {
		list = append(list, strings.ReplaceAll(`[sy]~(?:[^~\\\[\n]|\\[^\n]|\[\^?(?:[^\]\\~\n]|\\[^\]\n])+\])*~(?:[^~\\\n]|\\[\s\S])*~[gpiIMm0-9]*`, "~", `\`+string(d)))
	}
	return strings.Join(list, "|")
}

func (w *words) sed(script string) {
	if !plainSed().MatchString(script) {
		w.unclear("what a script of sed does is not known: " + script)
	}
}

// unreadable says why what a command runs cannot be read; empty if it starts nothing.
func unreadable(c *shell.Command) string {
	name := c.Name()
	if alias := aliases[name]; alias != "" {
		name = alias
	}
	fed := c.Fed || len(c.Texts) > 0 || len(c.Files) > len(c.Written)
	code := codes[name]
	switch {
	case code != nil && code().MatchString(strings.Join(c.Args, "\n")), name == "awk" && !awkPlain(c.Args[1:]):
		return "what a word of " + name + " does is not known"
	case shell.OneOf("sed gsed awk", name) && !shell.Known(strings.Join(c.Args, "")):
		return "a word of " + name + " is not known"
	case fed && shell.OneOf("ed ex vi vim sqlite3 psql mysql gdb lldb bc dc ftp sftp patch at batch crontab docker podman kubectl make", name):
		return "what " + name + " is told to do is not known"
	}
	return ""
}

// shell adds the script that a shell runs.
func (w *words) shell() {
	options := w.Flags(w.Args[1 : len(w.Args)-len(w.operand)])
	switch {
	case w.known:
	case len(w.operand) == 0:
		w.fed()
	case w.name == "bash" && slices.Equal(options, []string{"-n"}): // it is not run
		w.file(&w.Reads, w.dir, w.operand[0])
	case slices.Contains(options, "-c") || slices.Contains(options, "+c"):
		w.script(w.operand[0], w.dir, w.depth+1)
	case slices.Contains(options, "-s"):
		w.fed()
	default:
		w.file(&w.Reads, w.dir, w.operand[0])
		w.runs(w.operand[0])
	}
}

// runs adds the script in a file.
func (w *words) runs(name string) {
	if strings.HasPrefix(name, "/dev/") {
		w.fed()
		return
	}
	w.unclear("what is in the script " + name + " is not known")
}

// fed adds the script that a command reads.
func (w *words) fed() {
	texts := slices.Concat(w.Texts, w.Input)
	if len(texts) == 0 || len(w.Files) > len(w.Written) {
		w.unclear("what " + w.name + " is told to do is not known")
	}
	for _, text := range texts {
		w.script(text, w.dir, w.depth+1)
	}
}

// patch adds the files that a patch of Codex's form changes.
func (w *words) patch(texts []string) {
	for _, text := range texts {
		w.list(&w.Writes, argument.Patched(text)...)
	}
	if len(texts) == 0 || strings.ContainsRune(strings.Join(texts, ""), shell.Unknown) {
		w.unclear("what " + w.name + " is told to do is not known")
	}
}

// language finds out whether an interpreter runs a program that is a file.
func (w *words) language() {
	if !w.known && (len(w.operand) == 0 || w.operand[0] == "-" || strings.HasPrefix(w.operand[0], "/dev/")) {
		w.unclear("what " + w.name + " is told to do is not known")
		return
	}
	if w.Skip > 0 && len(w.operand) > 0 {
		w.other(w.operand[0])
	}
}

// start adds a command that another one starts, with values in the place of a word.
func (w *words) start(args []string, place string, values []string) {
	var filled []string
	for _, arg := range args {
		if place == "" || !strings.Contains(arg, place) {
			filled = append(filled, arg)
			continue
		}
		for _, value := range values {
			filled = append(filled, strings.ReplaceAll(arg, place, value))
		}
	}
	if len(filled) > 0 && w.depth < maxDepth {
		w.command(&shell.Command{Args: filled}, w.dir, w.depth+1)
	} else if len(filled) > 0 {
		w.unclear("a command inside a command is not known")
	}
}

// xargs adds the command that xargs starts with the words it reads.
func (w *words) xargs() {
	items, args := w.items(), w.operand
	if w.kept == "" && len(args) > 0 {
		args = append(slices.Clip(args), items...)
	}
	w.start(args, w.kept, items)
}

// items are the words that xargs reads.
func (w *words) items() []string {
	switch {
	case w.pattern, len(w.Files) > len(w.Written):
	case len(w.Texts)+len(w.Input) > 0:
		return strings.Fields(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(strings.Join(slices.Concat(w.Texts, w.Input), " ")))
	case w.Fed && len(w.listed) > 0:
		return w.listed
	}
	return []string{string(shell.Unknown)}
}

// tracked reports whether git prints names of files in the directory, or of none.
func (w *words) tracked() bool {
	options := w.Flags(w.Args[1:])
	known := func(option string) bool {
		return shell.OneOf("--name-only --cached --staged --relative --diff-filter --no-renames --modified --others --deleted --exclude-standard -z -m -o -c -d", option)
	}
	outside := func(word string) bool {
		return word == ".." || strings.HasPrefix(word, "/") || strings.HasPrefix(word, ":") || strings.Contains(word, "../") || !shell.Known(word)
	}
	lists := slices.Contains(w.operand, "ls-files") || slices.Contains(w.operand, "diff") && slices.Contains(options, "--name-only")
	return w.name == "git" && lists && !slices.ContainsFunc(options, func(o string) bool { return !known(o) }) && !slices.ContainsFunc(w.operand, outside)
}

// selects reports whether a command prints some of the lines that it is fed, as they are.
func (w *words) selects() bool {
	known := func(option string) bool {
		return shell.OneOf("-v -i -E -F -P -e -w -x -z -n -r -u", option) && (option != "-r" || w.name == "sort") || strings.Trim(option, "-0123456789") == ""
	}
	return shell.OneOf("grep egrep head tail sort uniq", w.name) && !slices.ContainsFunc(w.Flags(w.Args[1:]), func(o string) bool { return !known(o) })
}

// inner adds the command behind "uv run" and the like.
func (w *words) inner() {
	if why := unreadable(w.Command); why != "" {
		w.unclear(why)
		return
	}
	if at := slices.Index(w.operand, "build"); at >= 0 && shell.OneOf("docker podman", w.name) && w.operand[0] != "compose" {
		context := w.operand[len(w.operand)-1]
		if dir, ok := w.Full(w.dir, context); ok && w.IsDir(dir) {
			w.file(&w.Reads, w.dir, context)
		}
	}
	starts := func(word string) bool { return shell.OneOf(within, w.name+":"+word) }
	at := 1
	for at < len(w.Args) && strings.HasPrefix(w.Args[at], "-") {
		at++
	}
	switch {
	case at+1 >= len(w.Args):
		return
	case at > 1 && (!starts(w.Args[at]) || strings.Contains(strings.Join(w.Args[1:at], ""), "=")) && slices.ContainsFunc(w.Args[at:], starts):
		w.unclear("what an option of " + w.name + " changes is not known")
		return
	case !starts(w.Args[at]):
		return
	}
	if strings.HasPrefix(w.name, "dotenv") {
		w.file(&w.Reads, w.dir, ".env")
	}
	rest := w.Args[at+1:]
	if rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		w.unclear("what " + w.name + " runs is not known")
		return
	}
	w.start(rest, "", nil)
}

var (
	url = lazyregexp.New(`(?i)\b([a-z][a-z0-9+.-]*)://[/\\]*([^\s"'<>|/?#]*)`)
	// slashes matches how an address begins of which programs take any number of slashes.
	slashes = lazyregexp.New(`(?i)^(https?|wss?|ftps?):[/\\]*`)
	// bare matches an address without a scheme.
	bare = lazyregexp.New(`^(?:[/\\]{2,}|(?:[\w-]+(?:\.[\w-]+)+|localhost)(?::\d+)?(?:[/?#]|$))`)
	scp  = lazyregexp.New(`^(?:[\w.+-]+@)?([\w.-]+|\[[0-9a-fA-F:]+\]):`)
)

// hosts adds the hosts of the addresses in a word; false if there is none.
func (w *words) hosts(word string) bool {
	found := false
	if !strings.Contains(word, ":") {
		return false
	}
	for _, m := range url().FindAllStringSubmatch(word, -1) {
		if at, _ := w.Full(w.dir, m[1]+":"); strings.HasPrefix(m[2], "[") && w.Lstat(at) != nil {
			w.unclear("in the directory " + m[1] + ":, brackets may stand for the name of a file")
		}
		if strings.EqualFold(m[1], "file") {
			_, at, _ := strings.Cut(word, "://")
			if strings.ContainsAny(at, "%{}[]") {
				w.unclear("which file is meant is not known: " + word)
			}
			w.file(&w.Reads, w.dir, strings.TrimPrefix(at, "localhost"))
		} else {
			w.host(m[2])
		}
		found = true
	}
	if at := scp().FindStringSubmatch(word); !found && at != nil && (shell.OneOf("scp rsync sftp", w.name) || shell.OneOf("git hub gh", w.name) && (strings.Contains(word, "@") || w.remoteName(word))) {
		w.host(at[1])
		return true
	}
	return found
}

// remoteName reports whether a word of git stands where a remote repository is named.
func (w *words) remoteName(word string) bool {
	at := slices.IndexFunc(w.operand, func(word string) bool { return shell.OneOf("clone ls-remote push pull fetch remote submodule", word) })
	return at >= 0 && (shell.OneOf("remote submodule", w.operand[at]) || at+1 < len(w.operand) && w.operand[at+1] == word)
}

// address adds the host of an operand that is an address, with a scheme or without.
func (w *words) address(word string) {
	word, _, _ = strings.Cut(slashes().ReplaceAllString(word, "$1://"), "?")
	if !w.hosts(word) {
		w.host(strings.TrimLeft(word, `/\`))
	}
}

// host adds what stands between // and / in an address.
func (f *finder) host(authority string) {
	authority, _, _ = strings.Cut(authority, "/")
	if strings.Contains(authority, `\`) {
		f.unclear("programs differ in which host is meant: " + authority)
		return
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if end := strings.LastIndexByte(authority, ':'); end >= 0 && !strings.HasSuffix(authority, "]") {
		authority = authority[:end]
	}
	authority = strings.ToLower(strings.TrimRight(strings.Trim(authority, "[]."), ".,;)!"))
	if strings.ContainsAny(authority, wildcards+string(shell.Unknown)+shell.Top+"{}[]%$*") || len(authority) > 255 || len(f.Hosts) == maxHosts {
		f.unclear("which host is meant is not known: " + authority)
	} else if authority != "" && !strings.ContainsAny(authority, " \t\n") {
		add(&f.Hosts, strings.ToValidUTF8(authority, "\uFFFD"))
	}
}
