package lazy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
)

// File is one delivered file.
type File struct {
	// Path is absolute, and Display relative to the root, with slashes. Print neither as it is.
	Path      string          `json:"path"`
	Display   string          `json:"display"`
	MTimeMs   int64           `json:"mtimeMs"`
	SizeBytes int64           `json:"sizeBytes"`
	Reason    reminder.Change `json:"reason"`
	// Delivery is this file's: with bodies asked for and the budget exhausted, only its path is delivered.
	Delivery chain.Delivery `json:"delivery"`
	Body     string         `json:"body"` // the delivered text, escaped
}

// Touched is the answer of [State.Touch].
type Touched struct {
	// Target is the directory that the first path counts as; outside of the root the path itself, absolute.
	Target      string             `json:"target"`
	Files       []File             `json:"files"`    // from the root down
	Pending     int                `json:"pending"`  // files that wait for the next event
	Reminder    string             `json:"reminder"` // Message with its tag; empty without files, and when delivery is off
	Diagnostics []chain.Diagnostic `json:"diagnostics"`

	Message reminder.Message `json:"-"` // notifies the model
}

// Touch answers an event in which a tool touched paths, relative ones below the working directory: with the
// undelivered files that apply there, which count as delivered from now on. With delivery "off" they are listed, and
// count, but there is no reminder. Options that never resolve give none. Of more than 1,024 paths the first are used.
func (s *State) Touch(view chain.FS, o chain.Options, paths []string) Touched {
	t := newToucher(s, view, o)
	answer := Touched{Files: []File{}}
	if t.options.Resolver.ChangedWhen != chain.ChangedNeverResolved {
		inside := false
		for i, path := range paths[:min(len(paths), maxPaths)] {
			target, ok := t.touch(path)
			inside = inside || ok
			if i == 0 {
				answer.Target = target
			}
		}
		if inside {
			t.lookForGone()
			t.offerQueue()
			answer.Files, answer.Message = t.take()
		}
	}
	answer.Pending, answer.Diagnostics = len(s.Queue), t.diagnostics
	answer.Reminder = answer.Message.Tagged()
	return answer
}

const maxPaths = 1024

type toucher struct {
	state   *State
	view    chain.FS
	options chain.Options
	markers []string
	real    string // of the root, once it is known

	found       []candidate
	gone        []File                 // that were given
	resolved    map[string][]candidate // by directory
	diagnostics []chain.Diagnostic
	// remarks were made when their directory was covered. They are made again if their file is delivered again.
	remarks []chain.Diagnostic
}

type candidate struct {
	version Version
	source  *chain.Source
	// distance is how many directories it lies above what was touched, and order its place in its chain.
	distance, order int
	queued          bool // comes from the queue, after what was touched
	duplicate       bool // the model was given its text from a directory above
}

func newToucher(s *State, view chain.FS, o chain.Options) *toucher {
	t := &toucher{state: s, view: view, options: nestedOptions(o, s.Root), resolved: map[string][]candidate{}, diagnostics: []chain.Diagnostic{}}
	for _, name := range o.Filled().Markers {
		if chain.IsFileName(name) {
			t.markers = append(t.markers, name)
		}
	}
	return t
}

// nestedOptions are the options for files that are delivered one by one: only those of the tree, from the session's
// root, and no more of their text than is delivered.
func nestedOptions(o chain.Options, root string) chain.Options {
	o = o.Filled()
	if !o.AllNames { // a directory is judged by itself
		o.FallbackNames, o.Otherwise = slices.Concat(o.FallbackNames, slices.Concat(o.Otherwise...)), nil
	}
	o.Root, o.Managed, o.GlobalDir, o.Above = root, "", "", false
	o.Markers, o.Home, o.ConfigDirs = []string{}, "", []string{} // the root is known
	o.Checks.NearMisses = false                                  // the chain and lint report them
	o.Budget.File, o.Budget.Total = o.Resolver.MaxFile, o.Resolver.MaxFile
	for _, by := range o.Readers {
		if by.Options.Resolver.Delivery != chain.DeliverOff { // it also reads in directories that are touched
			o.Readers = append(slices.Clip(o.Readers), chain.Reader{Options: nestedOptions(by.Options, root)})
		}
	}
	return o
}

// reportf adds a row, once.
func (t *toucher) reportf(code chain.Code, path, format string, args ...any) {
	t.add(chain.Diagnostic{Code: code, Severity: code.Severity(), Path: path, Detail: fmt.Sprintf(format, args...)})
}

func (t *toucher) add(d chain.Diagnostic) {
	if !slices.Contains(t.diagnostics, d) {
		t.diagnostics = append(t.diagnostics, d)
	}
}

// touch finds what applies to one path. It returns the directory that the path counts as, and whether it is in the
// root.
func (t *toucher) touch(path string) (target string, inside bool) {
	path, ok := t.inside(path)
	if !ok {
		return path, false
	}
	w := t.walk(path)
	list, known := t.resolved[w.directory]
	if !known {
		list = t.resolve(w)
		t.resolved[w.directory] = list
		t.state.cover(w.directory)
	}
	for _, c := range list {
		if len(c.source.Globs) == 0 && !known || c.source.Concerns(path) {
			t.found = append(t.found, c)
		}
	}
	return w.directory, true
}

func (t *toucher) resolve(w way) []candidate {
	c := chain.ResolveTouched(t.view, w.directory, t.options)
	for _, d := range c.Diagnostics {
		if isRemark(d.Code) && t.state.covers(filepath.Dir(d.Path)) {
			t.remarks = append(t.remarks, d)
		} else {
			t.add(d)
		}
	}
	t.noteGone(&c)
	var list []candidate
	given := map[string]bool{} // sources with a delivered duplicate above them
	for i := range c.Sources {
		src := &c.Sources[i]
		directory := filepath.Dir(src.Path)
		if !chain.Within(w.top, directory) {
			continue
		}
		v := versionOf(src)
		switch src.State { //nolint:exhaustive // in all others there is a text
		case chain.StateDuplicate:
			if t.state.given(&v, t.options.Resolver.ChangedWhen) {
				given[src.DuplicateOf] = true
			}
		case chain.StateSkipped:
			if len(src.Globs) > 0 {
				src.State, src.Scope = chain.StateKept, chain.ScopeNested
				list = append(list, candidate{version: v, source: src, order: i})
			}
		case chain.StateKept:
			src.Scope = chain.ScopeNested
			c := candidate{version: v, source: src, order: i, duplicate: given[src.Path]}
			if chain.Within(directory, w.directory) { // else a rule or an import, which stands by what names it
				c.distance = len(split(w.directory[len(directory):]))
			}
			list = append(list, c)
		}
	}
	return list
}

// isRemark reports whether a row is about a file that is used or was replaced, rather than about something that the
// model misses.
func isRemark(code chain.Code) bool {
	return slices.Contains([]chain.Code{
		chain.CodeShadowedByOverride, chain.CodeEmptyOverride, chain.CodeDuplicate, chain.CodeHiddenUnicode, chain.CodeInvalidUTF8,
		chain.CodeSymlinkStub, chain.CodeReadCap, chain.CodeImportRefused, chain.CodeUntrustedRoot,
	}, code)
}

// noteGone notes which files on the way of a chain are missing, or have no text any more.
func (t *toucher) noteGone(c *chain.Chain) {
	for _, list := range [][]Version{t.state.Delivered, t.state.Initial} {
		for i := range list {
			v := &list[i]
			if c.Root != "" && chain.Within(c.Root, v.Path) && chain.Within(filepath.Dir(v.Path), c.Dir) &&
				!slices.ContainsFunc(c.Sources, func(src chain.Source) bool { return src.Path == v.Path && present(&src) }) {
				t.lose(v)
			}
		}
	}
}

// lookForGone notes which files that were given are missing, wherever they were, up to as many as an event has.
func (t *toucher) lookForGone() {
	for i := range t.state.Delivered {
		v := &t.state.Delivered[i]
		if _, err := t.view.RealPath(v.Path); errors.Is(err, fs.ErrNotExist) && len(t.gone) < t.options.Resolver.MaxFiles {
			t.lose(v)
		}
	}
}

// lose notes that a file is missing. The model is told of one that is not among those of its prompt, whose changes are
// reported by themselves.
func (t *toucher) lose(v *Version) {
	is := func(w Version) bool { return w.Path == v.Path }
	if !v.Gone && !slices.ContainsFunc(t.state.Initial, is) && !slices.ContainsFunc(t.gone, func(f File) bool { return f.Path == v.Path }) {
		t.gone = append(t.gone, File{Path: v.Path, Reason: reminder.Removed, Delivery: chain.DeliverReminder})
		t.add((&edit{before: v}).diagnostic())
	}
	v.Gone = true
}

// offerQueue adds the existing files of the queue and empties it: what is not taken goes back.
func (t *toucher) offerQueue() {
	queue := t.state.Queue
	t.state.Queue = []string{}
	ways := map[string][]candidate{}
	for _, path := range queue {
		directory := filepath.Dir(path)
		list, ok := ways[directory]
		if !ok && chain.Within(t.state.Root, directory) {
			if w := t.walk(directory); w.directory == directory {
				list = t.resolve(w)
			}
			ways[directory] = list
		}
		if i := slices.IndexFunc(list, func(c candidate) bool { return c.version.Path == path }); i >= 0 {
			c := list[i]
			c.queued = true
			t.found = append(t.found, c)
		}
	}
}

// take chooses what is delivered, and puts the rest into the queue.
func (t *toucher) take() ([]File, reminder.Message) {
	list := t.undelivered()
	r := &t.options.Resolver
	nearer := byDistance
	if r.RootFirst {
		nearer = fromRoot
	}
	waiting := slices.IndexFunc(list, func(c candidate) bool { return c.queued })
	if waiting < 0 {
		waiting = len(list)
	}
	slices.SortStableFunc(list[:waiting], nearer)
	taken := list[:min(len(list), r.MaxFiles)]
	for _, c := range list[len(taken):min(len(list), len(taken)+maxQueue)] {
		t.state.Queue = append(t.state.Queue, c.version.Path)
	}
	return t.deliver(taken)
}

// undelivered are the files that were found and not given, each once.
func (t *toucher) undelivered() []candidate {
	var list []candidate
	for _, c := range t.found {
		again := func(d candidate) bool {
			return d.version.Path == c.version.Path || d.version.real() == c.version.real() && d.version.SHA256 == c.version.SHA256
		}
		if !c.duplicate && !slices.ContainsFunc(list, again) && !t.state.stands(&c.version, t.options.Resolver.ChangedWhen) {
			list = append(list, c)
		}
	}
	return list
}

// byDistance orders files by how near they are to what was touched. A person's own file is nearer than its directory's
// file, which it follows in the chain.
func byDistance(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.order, a.order))
}

func fromRoot(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(strings.Count(a.version.Path, separator), strings.Count(b.version.Path, separator)),
		cmp.Compare(filepath.Dir(a.version.Path), filepath.Dir(b.version.Path)),
		cmp.Compare(a.order, b.order))
}

func (t *toucher) deliver(taken []candidate) ([]File, reminder.Message) {
	// The text budget goes to the nearest, whatever the order.
	slices.SortStableFunc(taken, byDistance)
	budget := newTextBudget(&t.options)
	blocks := map[string]block{}
	for _, c := range taken {
		blocks[c.version.Path] = budget.block(*c.source)
	}
	slices.SortStableFunc(taken, fromRoot)
	files := make([]File, 0, len(taken)+len(t.gone))
	var reported []reminder.File
	for _, c := range taken {
		b := blocks[c.version.Path]
		f := t.file(c, b)
		files, reported = append(files, f), append(reported, f.reminder(b))
	}
	for _, c := range taken {
		t.state.deliver(c.version)
		for _, d := range t.remarks {
			if d.Path == c.version.Path {
				t.add(d)
			}
		}
	}
	for _, d := range budget.diagnostics {
		t.add(d)
	}
	for _, f := range t.gone {
		files, reported = append(files, f), append(reported, f.reminder(block{}))
	}
	if t.options.Resolver.Delivery == chain.DeliverOff {
		return files, reminder.Message{}
	}
	return files, reminder.StyleOf(t.options.Layout).ResolvePaths(reported)
}

func (t *toucher) file(c candidate, b block) File {
	f := File{
		Path: c.version.Path, Display: c.source.Display, MTimeMs: c.version.MTimeMs, SizeBytes: c.version.Size,
		Reason: reminder.New, Delivery: t.options.Resolver.Delivery, Body: b.body,
	}
	if t.state.known(&c.version) {
		f.Reason = reminder.Updated
	}
	if f.Delivery == chain.DeliverBody && b.text == "" {
		f.Delivery = chain.DeliverReminder
	}
	return f
}
