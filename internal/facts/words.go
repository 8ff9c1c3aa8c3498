package facts

import (
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// words is the work on the words of one command.
type words struct {
	*finder
	*usage
	*shell.Command
	dir, name string
	depth     int
	operand   []string
	target    string // the directory that operands are written to
	known     bool   // an option is there that makes a program do something else
	pattern   bool   // an option has what else is an operand
	edits     bool   // an option makes the operands written
	shows     bool   // an option makes them read
}

func (w *words) all() {
	switch w.operands {
	case "find":
		w.find()
		return
	case "tar":
		w.tar()
	case "dd":
		w.keys(map[string]*[]string{"if": &w.Reads, "of": &w.Writes})
	case "openssl":
		w.openssl()
	default:
		w.split()
		w.files()
	}
	w.starts()
}

// split tells options and operands apart, and adds the files of options.
func (w *words) split() {
	args := w.Args[1:]
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			w.operand = append(w.operand, args[i+1:]...)
			return
		}
		if plus := strings.HasPrefix(word, "+") && w.options["+!"] != 0; len(word) < 2 || word[0] != '-' && !plus && w.options[word] != 'x' {
			w.operand = append(w.operand, word)
			continue
		}
		kind, value, attached := w.option(word)
		if strings.HasPrefix(word, "+") {
			kind = 'x'
		}
		if strings.IndexByte(flagKinds, kind) < 0 && kind != 0 && !attached && i+1 < len(args) {
			i++
			value = args[i]
		}
		if (kind == '2' || kind == '3') && i+1 < len(args) {
			i++
			value = args[i]
		}
		w.value(kind, value)
		if kind == 0 && attached {
			w.other(value)
		}
	}
}

// value adds what the value of an option of this kind is.
func (w *words) value(kind byte, value string) {
	switch kind {
	case 'r', 'R', '3':
		w.file(&w.Reads, w.dir, value)
	case 'w':
		w.file(&w.Writes, w.dir, value)
	case 'd':
		w.target = value
	case 'h':
		w.address(value)
	case '@':
		if at := strings.IndexAny(value, "@<"); at == 0 || at > 0 && value[at-1] == '=' {
			name, _, _ := strings.Cut(value[at+1:], ";")
			w.file(&w.Reads, w.dir, name)
		}
	case 'e':
		w.edits = true
	case 'q':
		w.shows = true
	case 'k':
		w.known = true
	case 'x':
		w.unclear("what an option of " + w.name + " runs is not known")
	}
	w.pattern = w.pattern || kind == 'R' || kind == 'V' || kind == 'p'
}

// files adds the operands.
func (w *words) files() {
	operands := w.operand
	if !w.pattern {
		operands = operands[min(w.skip, len(operands)):]
	}
	if len(operands) == 0 && w.here && (!w.Fed || w.name == "ls") {
		operands = []string{"."}
	}
	one := min(1, len(operands))
	switch kind := w.operands; {
	case kind == "-":
	case kind == "h":
		for _, word := range operands {
			w.address(word)
		}
	case kind == "p":
		w.address(strings.Join(operands[:one], ""))
	case kind == "s":
		w.remote(operands)
	case kind == "c", kind == "m":
		w.copied(operands)
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

// list adds operands that are files, or addresses.
func (w *words) list(list *[]string, operands ...string) {
	for _, word := range operands {
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
	if w.operands == "m" {
		from = &w.Writes
	}
	w.list(from, operands...)
	at, ok := w.full(w.dir, target)
	if !ok || !w.isDir(at) {
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
	args := w.Args[1:]
	at := slices.IndexFunc(args, func(word string) bool {
		return strings.HasPrefix(word, "-") && len(word) > 1 && !oneOf(word, "-H -L -P") || word == "(" || word == "!"
	})
	if at < 0 {
		at = len(args)
	}
	roots := slices.DeleteFunc(slices.Clone(args[:at]), func(word string) bool { return oneOf(word, "-H -L -P") })
	if len(roots) == 0 {
		roots = []string{"."}
	}
	w.list(&w.Reads, roots...)
	w.printed(roots)
	for i := at; i < len(args); i++ {
		switch word := args[i]; {
		case oneOf(word, "-exec -execdir -ok -okdir"):
			if strings.HasSuffix(word, "dir") {
				w.unclear("where find starts a command is not known")
			}
			end := i + 1
			for end < len(args) && args[end] != ";" && (args[end] != "+" || args[end-1] != "{}") {
				end++
			}
			w.start(args[i+1:end], "{}", roots)
			i = end
		case word == "-delete":
			w.list(&w.Writes, roots...)
		case oneOf(word, "-fprint -fprint0 -fls -fprintf") && i+1 < len(args):
			i++
			w.list(&w.Writes, args[i])
		case word == "-files0-from" || strings.ContainsRune(word, shell.Unknown):
			w.unclear("a word of find is not known")
		}
	}
}

// tar adds the archive and what goes into it or comes out of it.
func (w *words) tar() {
	args := slices.Clone(w.Args[1:])
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args[0] = "-" + args[0]
	}
	var operands []string
	mode, archive, dir := "", "", ""
	for i := 0; i < len(args); i++ {
		word, value, attached := strings.Cut(args[i], "=")
		next := func() string {
			if !attached && i+1 < len(args) {
				i++
				return args[i]
			}
			return value
		}
		switch {
		case oneOf(word, "--checkpoint-action --to-command --use-compress-program --info-script --new-volume-script --rsh-command --rmt-command -I -F -T --files-from -X --exclude-from"):
			w.unclear("what an option of tar does is not known")
		case oneOf(word, "-C --directory"):
			dir = next()
		case oneOf(word, "--file"):
			archive = next()
		case oneOf(word, "--create --append --update --extract --get --list --diff"):
			mode += strings.NewReplacer("g", "x", "l", "t", "e", "x", "u", "r", "a", "r").Replace(word[2:3])
		case oneOf(word, "--exclude --transform --strip-components --owner --group --mode --mtime"):
			next()
		case len(word) > 1 && word[0] == '-' && word[1] != '-':
			mode += strings.NewReplacer("u", "r").Replace(word[1:])
			if strings.Contains(word, "f") {
				archive = next()
			}
		case !strings.HasPrefix(word, "-"):
			operands = append(operands, args[i])
		}
	}
	from := w.dir
	w.dir = shell.Join(w.dir, dir)
	switch {
	case strings.ContainsAny(mode, "cr"):
		w.archive(&w.Writes, from, archive)
		w.list(&w.Reads, operands...)
	case strings.Contains(mode, "x"):
		w.archive(&w.Reads, from, archive)
		if !strings.Contains(mode, "O") {
			w.list(&w.Writes, ".")
		}
	default:
		w.archive(&w.Reads, from, archive)
	}
}

func (w *words) archive(list *[]string, dir, name string) {
	if host, _, remote := strings.Cut(name, ":"); remote && !strings.Contains(host, "/") {
		w.unclear("an archive on another machine")
		return
	}
	w.file(list, dir, name)
}

// keys adds the files of words such as if=x.
func (w *words) keys(lists map[string]*[]string) {
	for _, word := range w.Args[1:] {
		key, value, _ := strings.Cut(word, "=")
		if list := lists[key]; list != nil {
			w.file(list, w.dir, value)
		} else if strings.ContainsRune(word, shell.Unknown) {
			w.unclear("a word of " + w.name + " is not known")
		}
	}
}

// openssl adds the files behind -in, -out and the like.
func (w *words) openssl() {
	for i, word := range w.Args[1:] {
		switch before := w.Args[i]; {
		case oneOf(before, "-in -inkey -key -CAfile -CA -CAkey -cert -config -signkey -certfile -kfile -passin -pass"):
			w.file(&w.Reads, w.dir, strings.TrimPrefix(word, "file:"))
		case oneOf(before, "-out -keyout -writerand"):
			w.file(&w.Writes, w.dir, word)
		case before == "-connect":
			w.address(word)
		case i > 0 && !strings.HasPrefix(word, "-"):
			w.other(word)
		}
	}
}
