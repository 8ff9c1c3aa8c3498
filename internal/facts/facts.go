// Package facts says what is known of a tool's call before it is made: see [phases.Facts].
//
// Package argument reads the arguments of a call and shell the commands in them, protect knows the files that hold
// secrets, guard finds out whether a call gets at one, and secret finds secrets in texts. The file programs.txt of
// package shell says what programs do with their words. Start reading at [Of].
package facts

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/guard"
	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of the facts of one call.
const (
	maxCommands = 1000
	maxFiles    = 300
	maxHosts    = 300
	maxText     = 256 << 10 // bytes of all words
	maxDepth    = 4         // commands inside commands

	wildcards = string(shell.Star) + string(shell.Any)
)

// Of derives the facts of a call. paths are the files that the host says it is about; dir is the absolute directory that
// relative paths start from, home the user's; both may be empty. It looks at files' names and links, and reads no file.
// It is safe for concurrent use.
func Of(tool string, arguments json.RawMessage, paths []string, dir, home string) *phases.Facts {
	f := &finder{View: guard.NewView(dir, home)}
	root, err := argument.Decode(arguments)
	if err != nil {
		f.unclear("the arguments cannot be read: " + err.Error())
	}
	f.call(tool, root, paths)
	f.secrets(tool, root, paths)
	f.outside()
	return &f.Facts
}

// finder collects the facts of one call.
type finder struct {
	phases.Facts
	*guard.View
	text   int      // bytes of words
	made   []string // links, and directories that were moved or copied: what is there is not what the call will see
	listed []string // files and directories whose names come out of the pipe
	shown  []string // those of Reads of which a command only shows the names, as far as the guard agrees
}

// unclear says that something of the call is not known. The first reason stays.
func (f *finder) unclear(why string) {
	if !f.Unparsed {
		f.Unparsed, f.Why = true, shell.Visible(why)
	}
}

func add(list *[]string, text string) {
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// file adds a file to one of the lists.
func (f *finder) file(list *[]string, dir, name string) {
	if name == "" || name == "-" || strings.HasPrefix(name, "/dev/fd/") {
		return
	}
	at, ok := f.Full(dir, name)
	found := []string{at}
	if ok && shell.HasAny(at, wildcards) {
		found, ok = f.Expand(at)
	}
	if !ok || len(f.Reads)+len(f.Writes)+len(f.Names)+len(found) > maxFiles {
		f.unclear("which file is meant is not known: " + name)
		return
	}
	for _, at := range found {
		if slices.ContainsFunc(f.made, func(made string) bool { return at == made || strings.HasPrefix(at, made+"/") }) {
			f.unclear("what the call puts there is not known: " + name)
		}
		f.found(list, dir, at)
	}
}

func (f *finder) found(list *[]string, dir, at string) {
	switch filepath.Clean(at) {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return
	}
	real := f.Resolve(at)
	if strings.HasPrefix(real, "/dev/tcp/") || strings.HasPrefix(real, "/dev/udp/") {
		f.host(real[len("/dev/tcp/"):])
		return
	}
	if rest, ok := strings.CutPrefix(real, "/proc/"); ok {
		elems := strings.SplitN(rest, "/", 3)
		if here, known := f.Full(dir, "."); known && len(elems) > 1 && elems[0] == "self" && elems[1] == "cwd" {
			real = f.Resolve(here + "/" + strings.Join(elems[2:], "/"))
		} else if len(elems) > 1 && shell.OneOf("cwd root fd task", elems[1]) {
			f.unclear("which file is meant is not known: " + real)
			return
		}
	}
	add(list, strings.ToValidUTF8(real, "\uFFFD"))
}

// plausible adds a word to the names if it is plausible that it is a file.
func (f *finder) plausible(dir, word string) {
	word = strings.TrimSuffix(word, "/...")
	first, _, _ := strings.Cut(word, "/")
	if word == "" || strings.ContainsAny(word, "\n\x00") || len(word) > 1024 || strings.Contains(word, "://") {
		return
	}
	likely := strings.HasPrefix(word, "/") || first == "." || first == ".." || first == "~" || strings.HasPrefix(word, ".") && !strings.ContainsAny(word, " \t|()[]{}")
	if at, ok := f.Full(dir, first); likely || ok && first != "" && (shell.HasAny(first, wildcards) || f.Lstat(at) != nil) {
		f.file(&f.Names, dir, word)
	}
}

// secrets finds the files whose secrets the call would get at.
func (f *finder) secrets(tool string, root argument.Node, paths []string) {
	g := guard.Guard{Set: defaults()}
	finding := g.Judge(tool, root, paths, f.View)
	switch {
	case finding == nil:
	case finding.Pattern == "" || strings.ContainsRune(finding.At, shell.Unknown):
		f.unclear(finding.Reason())
	default:
		f.file(&f.Secrets, "", finding.At)
	}
	for _, name := range slices.Concat(f.Reads, f.Writes) {
		if _, ok := g.Set.Path(name); ok && !slices.Contains(f.shown, name) {
			add(&f.Secrets, name)
		}
	}
}

//nolint:gochecknoglobals // made once
var defaults = sync.OnceValue(func() *protect.Set {
	set, err := protect.New(protect.Defaults())
	if err != nil {
		panic(err)
	}
	return set
})

// outside finds the files that are not in the project.
func (f *finder) outside() {
	files := slices.Concat(f.Reads, f.Writes, f.Names)
	if len(files) == 0 || f.Dir == "" {
		return
	}
	dir, project := f.Resolve(f.Dir), ""
	for _, name := range files {
		if inside(dir, name) {
			continue
		}
		if project = cmp.Or(project, f.Top(dir)); !inside(project, name) {
			add(&f.Outside, name)
		}
	}
}

func inside(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
