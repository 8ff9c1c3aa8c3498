package facts

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/guard"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// words is the work on the words of one command.
type words struct {
	*finder
	*shell.Usage
	*shell.Command
	dir, name string
	depth     int
	operand   []string
	target    string // the directory that operands are written to
	kept      string // what an option says, as the usage has it
	known     bool   // an option is there that makes a program do something else
	pattern   bool   // an option has what else is an operand
	edits     bool   // an option makes the operands written
	shows     bool   // an option makes them read
}

func (w *words) all() {
	switch w.Operands {
	case "find":
		w.find()
		return
	case "tar":
		w.tar()
	default:
		w.split(w.Args[1:])
		before := len(w.Reads)
		w.files()
		if !w.Fed || w.name != "xargs" && (len(w.Reads) > before || !w.selects()) {
			w.listed = nil
		}
		if shell.OneOf(guard.Listers, w.name) {
			w.shown = append(w.shown, w.Reads[before:]...)
		}
	}
	if w.tracked() {
		w.listed = []string{"."}
	}
	w.starts()
}

// split tells options and operands apart, and adds the files of options.
func (w *words) split(args []string) {
	operands, options := w.Split(args)
	for _, o := range options {
		w.value(o)
	}
	for _, at := range operands {
		w.operand = append(w.operand, args[at])
	}
}

// value adds what the value of an option is.
func (w *words) value(o shell.Option) {
	value := o.Value
	switch o.Kind {
	case 0:
		w.other(value)
	case 'r', 'R', '3':
		w.file(&w.Reads, w.dir, value)
	case 'w':
		w.file(&w.Writes, w.dir, value)
	case 'd':
		w.target = value
	case 'C':
		w.dir = shell.Join(w.dir, value)
	case 'I', 'i':
		w.kept = cmp.Or(value, "{}")
	case 'h':
		w.address(value)
	case '@':
		w.attached(value)
	case 'u':
		if text, name, ok := strings.Cut(value, "@"); ok && !strings.Contains(text, "=") {
			w.file(&w.Reads, w.dir, name)
		}
	case 'e':
		w.edits = true
	case 'q':
		w.shows = true
	case 'k':
		w.known = true
	case 'S':
		w.sed(value)
	case 'x', 'X':
		w.unclear("what an option of " + w.name + " runs is not known")
	}
	w.pattern = w.pattern || o.Replaces()
}

// attached adds the files of a form's field, such as @file and name=@file,other;type=text.
func (w *words) attached(value string) {
	if _, names, ok := strings.Cut(strings.Replace(value, "=<", "=@", 1), "=@"); ok {
		names, _, _ = strings.Cut(names, ";")
		w.list(&w.Reads, strings.Split(names, ",")...)
	} else if value != "" && strings.IndexByte("@<", value[0]) >= 0 {
		w.file(&w.Reads, w.dir, value[1:])
	}
}

// candidates are the operands that may be files: without a script, a pattern and the like.
func (w *words) candidates() []string {
	if w.edits && len(w.operand) > 0 && w.operand[0] == "" { // sed -i '' of BSD
		w.operand = w.operand[1:]
	}
	operands := w.operand
	if shell.OneOf("sed gsed", w.name) && !w.pattern && len(operands) > 0 {
		w.sed(operands[0])
	}
	if !w.pattern {
		operands = operands[min(w.Skip, len(operands)):]
	}
	if len(operands) == 0 && w.Here && (!w.Fed || w.name == "ls") {
		return []string{"."}
	}
	return operands
}

// files adds the operands.
func (w *words) files() {
	operands := w.candidates()
	one := min(1, len(operands))
	if w.target != "" && !shell.OneOf("c m", w.Operands) {
		w.list(&w.Writes, w.target)
	}
	switch kind := w.Operands; {
	case kind == "-":
	case kind == "x":
		w.unclear("what " + w.name + " runs is not known")
	case kind == "a" && len(operands) > 0 && bare().MatchString(operands[0]):
		w.addresses(operands[:one])
	case kind == "h":
		w.addresses(operands)
	case kind == "p":
		w.addresses(operands[:one])
	case kind == "q":
		w.addresses(asked(operands))
	case kind == "s":
		w.remote(operands)
	case kind == "c", kind == "m":
		w.copied(operands)
	case kind == "t":
		w.restored(operands)
	case kind == "o":
		w.list(&w.Writes, operands[:one]...)
		w.list(&w.Reads, operands[one:]...)
	case kind == "i":
		w.list(&w.Reads, operands[:one]...)
		w.list(&w.Writes, operands[one:]...)
	case kind == "w" && !w.shows, w.edits:
		w.list(&w.Writes, operands...)
	case kind == "r", kind == "w":
		w.list(&w.Reads, operands...)
	default:
		for _, word := range operands {
			w.other(word)
		}
	}
}

func (w *words) addresses(list []string) {
	for _, word := range list {
		w.address(word)
	}
}

// asked returns the servers behind @ that dig asks, or else the first name, to whose servers the question goes.
func asked(operands []string) []string {
	names := slices.DeleteFunc(slices.Clone(operands), func(word string) bool {
		return shell.OneOf("a aaaa any caa cname mx ns ptr soa srv txt", strings.ToLower(word))
	})
	servers := slices.DeleteFunc(slices.Clone(names), func(word string) bool { return !strings.HasPrefix(word, "@") })
	if len(servers) == 0 {
		return names[:min(1, len(names))]
	}
	return servers
}

// restored adds what git checkout takes for files: the words behind --, without it those that are there.
func (w *words) restored(operands []string) {
	if at := slices.Index(w.Args, "--"); at >= 0 {
		w.list(&w.Writes, w.Args[at+1:]...)
		return
	}
	for _, word := range operands {
		if at, ok := w.Full(w.dir, word); ok && w.Lstat(at) != nil {
			w.file(&w.Writes, w.dir, word)
		} else {
			w.other(word)
		}
	}
}

// list adds operands that are files, or addresses.
func (w *words) list(list *[]string, operands ...string) {
	for _, word := range operands {
		if rest, ok := strings.CutPrefix(word, ":/"); ok && w.name == "git" {
			word = shell.Top + "/" + rest
		}
		if !w.hosts(word) {
			w.file(list, w.dir, word)
		}
	}
}

// other adds a word of which it is not known what it is.
func (w *words) other(word string) {
	if strings.ContainsRune(word, shell.Unknown) {
		w.unclear("a word of " + w.name + " is not known: " + word)
	} else if !w.hosts(word) {
		w.plausible(w.dir, word)
	}
}

// copied adds what is copied or moved to the last operand, or to the directory of an option.
func (w *words) copied(operands []string) {
	target := w.target
	if target == "" && len(operands) > 0 {
		target, operands = operands[len(operands)-1], operands[:len(operands)-1]
		if len(operands) == 0 { // ln FILE
			operands, target = []string{target}, "."
		}
	}
	from := &w.Reads
	if w.Operands == "m" {
		from = &w.Writes
	}
	w.list(from, operands...)
	at, ok := w.Full(w.dir, target)
	if w.name == "ln" || slices.ContainsFunc(operands, func(word string) bool { from, ok := w.Full(w.dir, word); return !ok || w.IsDir(from) }) {
		defer func() { w.made = append(w.made, at) }()
	}
	if !ok || !w.IsDir(at) {
		w.list(&w.Writes, target)
		return
	}
	for _, word := range operands {
		w.file(&w.Writes, w.dir, strings.TrimSuffix(target, "/")+"/"+path.Base(word))
	}
}

// remote adds the host of ssh, where a command may run that cannot be seen here.
func (w *words) remote(operands []string) {
	if len(operands) > 0 {
		w.address("ssh://" + strings.TrimPrefix(operands[0], "ssh://"))
	}
	if len(operands) > 1 || w.Fed || len(w.Texts) > 0 {
		w.unclear("what runs on another machine is not known")
	}
}

// find adds what find reads, removes and writes, and the commands that it starts.
func (w *words) find() {
	roots, actions := shell.Find(w.Args)
	w.list(&w.Reads, roots...)
	for _, a := range actions {
		found, named := w.below(roots, a.Tests)
		switch {
		case shell.OneOf("-exec -execdir -ok -okdir", a.Name):
			if strings.HasSuffix(a.Name, "dir") {
				w.unclear("where find starts a command is not known")
			}
			w.start(a.Args, "{}", found)
		case a.Name == "-delete" && named:
			w.list(&w.Writes, found...)
		case a.Name == "-delete":
			w.list(&w.Writes, roots...)
		case strings.HasPrefix(a.Name, "-f") && len(a.Args) > 0:
			w.list(&w.Writes, a.Args...)
		case shell.OneOf("-printf -ls", w.Args...): // it prints more than names
			w.listed = nil
		case a.Name == "-print":
			w.listed = found
		default:
			w.unclear("a word of find is not known")
		}
	}
}

// below is what tests of find let through: a root itself, or what is below it if they leave the root out; named says
// that this is known by its name.
func (w *words) below(roots, tests []string) (found []string, named bool) {
	out, all, name := false, true, ""
	var names []string
	for i, word := range append(slices.Clip(tests), "-o") { // each of the alternatives must leave the root out
		value := strings.Join(tests[min(i+1, len(tests)):min(i+2, len(tests))], "")
		switch negated := i > 0 && shell.OneOf("! -not", tests[i-1]); {
		case shell.OneOf("-o -or ,", word):
			names = append(names, cmp.Or(name, "*"))
			all, out, name = all && out, false, ""
		case negated:
			all = all && word != "("
		default:
			if leavesOut(roots, word, value) {
				out = true
				name = narrower(name, roots[0], word, value)
			}
		}
	}
	glob := strings.NewReplacer("*", string(shell.Star), "?", string(shell.Any))
	for _, root := range roots {
		at, ok := w.Full(w.dir, root)
		if !all || !ok || !w.IsDir(at) {
			found = append(found, root)
			continue
		}
		for _, name := range names {
			found = append(found, strings.TrimSuffix(root, "/")+"/"+glob.Replace(name))
		}
	}
	return found, all && !slices.Contains(names, "*")
}

// leavesOut reports whether a test of find does not let the roots through.
func leavesOut(roots []string, test, value string) bool {
	switch test {
	case "-name", "-iname":
		return !slices.ContainsFunc(roots, func(root string) bool {
			match, err := path.Match(strings.ToLower(value), strings.ToLower(path.Base(root)))
			return match || err != nil
		})
	case "-path", "-ipath", "-wholename":
		return !slices.ContainsFunc(roots, func(root string) bool { return strings.Count(root, "/") >= strings.Count(value, "/") })
	case "-mindepth", "-type":
		return value == "f" || strings.Trim(value, "0123456789") == "" && strings.Trim(value, "0") != ""
	}
	return false
}

// narrower is the name of what is found, by one more test.
func narrower(name, root, test, value string) string {
	switch test {
	case "-name":
		return value
	case "-path":
		return strings.TrimPrefix(strings.TrimPrefix(value, root+"/"), "*/")
	}
	return name
}

// tar adds the archive and what goes into it or comes out of it.
func (w *words) tar() {
	args := w.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // letters, and behind them their values
		letters, values := args[0], args[1:]
		args = nil
		for _, letter := range letters {
			args = append(args, "-"+string(letter))
			if _, options := w.Split(args[len(args)-1:]); len(values) > 0 && slices.ContainsFunc(options, func(o shell.Option) bool { return o.Kind != 0 && o.Kind != 'x' }) {
				args, values = append(args, values[0]), values[1:]
			}
		}
		args = append(args, values...)
	}
	w.split(args)
	is := func(options string) bool {
		return slices.ContainsFunc(w.Flags(args), func(option string) bool { return shell.OneOf(options, option) })
	}
	from := w.dir
	w.dir = shell.Join(w.dir, w.target)
	switch {
	case is("-c -r -u --create --append --update --delete"):
		w.archive(&w.Writes, from, w.kept)
		w.list(&w.Reads, w.operand...)
	case is("-x --extract --get") && !is("-O --to-stdout"):
		w.list(&w.Writes, ".")
		fallthrough
	default:
		w.archive(&w.Reads, from, w.kept)
	}
}

func (w *words) archive(list *[]string, dir, name string) {
	if host, _, remote := strings.Cut(name, ":"); remote && !strings.Contains(host, "/") {
		w.unclear("an archive on another machine")
		return
	}
	w.file(list, dir, name)
}
