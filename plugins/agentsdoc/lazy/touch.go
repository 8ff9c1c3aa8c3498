package lazy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
)

// Reason says why a file is delivered.
type Reason string

// The reasons.
const (
	// ReasonNew is a file that the session was not told of.
	ReasonNew Reason = "new"
	// ReasonUpdated is one that it was told of, with another content.
	ReasonUpdated Reason = "updated"
	// ReasonRemoved is one that is not in the chain any more.
	ReasonRemoved Reason = "removed"
)

// File is one file that is delivered.
type File struct {
	// Path is absolute, and Display relative to the root, with slashes. Both are
	// exact, and not fit for printing.
	Path      string `json:"path"`
	Display   string `json:"display"`
	MTimeMs   int64  `json:"mtimeMs"`
	SizeBytes int64  `json:"sizeBytes"`
	Reason    Reason `json:"reason"`
	// Delivery is how this one is: where bodies are asked for and there is no
	// room for more, only its path is told.
	Delivery option.Delivery `json:"delivery"`
	// Body is the text that is told, escaped; empty without one.
	Body string `json:"body"`
}

// Touched is the answer of [State.Touch].
type Touched struct {
	// Target is the folder that the first path counts as; the path itself,
	// absolute, where that is outside of the root.
	Target string `json:"target"`
	// Files are listed from the root down.
	Files []File `json:"files"`
	// Pending counts the files that wait for the next event.
	Pending int `json:"pending"`
	// Reminder is Message with its tag; empty without files, and when delivery is
	// off.
	Reminder    string             `json:"reminder"`
	Diagnostics []chain.Diagnostic `json:"diagnostics"`

	// Message is what tells the model.
	Message reminder.Message `json:"-"`
}

// Touch answers an event in which a tool touched paths, relative ones below the
// working folder: with the files that apply there and were not delivered, which
// count as delivered from now on. In the delivery "off" they are listed, and
// count, but there is no reminder. Options that never resolve give none. Of more
// than 1,024 paths the first are looked at.
func (s *State) Touch(view chain.FS, o chain.Options, paths []string) Touched {
	t := newToucher(s, view, o)
	answer := Touched{Files: []File{}}
	if t.options.Resolver.ChangedWhen != option.ChangedNeverResolved {
		inside := false
		for i, path := range paths[:min(len(paths), maxPaths)] {
			target, ok := t.touch(path)
			inside = inside || ok
			if i == 0 {
				answer.Target = target
			}
		}
		if inside {
			t.offerQueue()
			answer.Files, answer.Message = t.take()
		}
	}
	answer.Pending, answer.Diagnostics = len(s.Queue), t.diagnostics
	answer.Reminder = answer.Message.Tagged()
	return answer
}

// maxPaths bounds the paths of one event.
const maxPaths = 1024

// toucher is one call of Touch.
type toucher struct {
	state   *State
	view    chain.FS
	options chain.Options
	markers []string
	real    string // of the root, once it is known

	found       []candidate
	resolved    []string // folders
	diagnostics []chain.Diagnostic
	// remarks were made when their folder was covered. They are made again where
	// their file is delivered again.
	remarks []chain.Diagnostic
}

// candidate is a file that applies to what was touched.
type candidate struct {
	version Version
	source  *chain.Source
	// distance is how many folders it lies above what was touched, and order its
	// place in its chain.
	distance, order int
	// queued says that it comes from the queue, behind what was touched.
	queued bool
	// twin says that the model was given its text as that of a folder above.
	twin bool
}

// newToucher prepares a call.
func newToucher(s *State, view chain.FS, o chain.Options) *toucher {
	t := &toucher{state: s, view: view, options: nestedOptions(o, s.Root), diagnostics: []chain.Diagnostic{}}
	for _, name := range o.Filled().Markers {
		if option.IsFileName(name) {
			t.markers = append(t.markers, name)
		}
	}
	return t
}

// nestedOptions are the options for files that are delivered one by one: those
// of the tree alone, from the root that the session has, and no more of their
// text than is told.
func nestedOptions(o chain.Options, root string) chain.Options {
	o = o.Filled()
	o.Root, o.Managed, o.GlobalDir = root, "", ""
	o.Markers, o.Home, o.ConfigDirs = []string{}, "", []string{} // the root is known
	o.Checks.NearMisses = false                                  // the chain's, and lint's, to tell
	r, def := &o.Resolver, option.Default().Resolver
	r.Delivery = cmp.Or(r.Delivery, def.Delivery)
	r.MaxFiles = positive(r.MaxFiles, def.MaxFiles)
	r.MaxFile = positive(r.MaxFile, def.MaxFile)
	r.MaxEvent = positive(r.MaxEvent, def.MaxEvent)
	o.Budget.File, o.Budget.Total = r.MaxFile, r.MaxFile
	return o
}

// positive returns the number, or the default where it is not positive.
func positive(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// report adds a row, once.
func (t *toucher) reportf(code chain.Code, path, format string, args ...any) {
	t.add(chain.Diagnostic{Code: code, Severity: code.Severity(), Path: path, Detail: fmt.Sprintf(format, args...)})
}

// add is report for a row that is there.
func (t *toucher) add(d chain.Diagnostic) {
	if !slices.Contains(t.diagnostics, d) {
		t.diagnostics = append(t.diagnostics, d)
	}
}

// touch finds what applies to one path. It returns the folder that the path
// counts as, and whether it is in the root.
func (t *toucher) touch(path string) (target string, inside bool) {
	path, ok := t.inside(path)
	if !ok {
		return path, false
	}
	w := t.walk(path)
	if !slices.Contains(t.resolved, w.folder) {
		t.resolved = append(t.resolved, w.folder)
		t.found = append(t.found, t.resolve(w)...)
		t.state.cover(w.folder)
	}
	return w.folder, true
}

// resolve finds the files on a way.
func (t *toucher) resolve(w way) []candidate {
	c := chain.ResolveTouched(t.view, w.folder, t.options)
	for _, d := range c.Diagnostics {
		if isRemark(d.Code) && t.state.covers(filepath.Dir(d.Path)) {
			t.remarks = append(t.remarks, d)
		} else {
			t.add(d)
		}
	}
	t.state.noteGone(&c)
	var list []candidate
	given := map[string]bool{} // sources with a twin above them that was given
	for i := range c.Sources {
		src := &c.Sources[i]
		folder := filepath.Dir(src.Path)
		if !within(w.top, folder) {
			continue
		}
		v := versionOf(src)
		switch src.State { //nolint:exhaustive // in all others there is a text
		case chain.StateDuplicate:
			if t.state.given(&v, t.options.Resolver.ChangedWhen) {
				given[src.DuplicateOf] = true
			}
		case chain.StateKept:
			src.Scope = chain.ScopeNested
			list = append(list, candidate{version: v, source: src, order: i, distance: len(split(w.folder[len(folder):])), twin: given[src.Path]})
		}
	}
	return list
}

// isRemark reports whether a row is about a file that is used or was replaced,
// and no reason why the model misses something.
func isRemark(code chain.Code) bool {
	switch code {
	case chain.CodeShadowedByOverride, chain.CodeEmptyOverride, chain.CodeDuplicate, chain.CodeHiddenUnicode, chain.CodeInvalidUTF8,
		chain.CodeSymlinkStub, chain.CodeReadCap, chain.CodeImportRefused, chain.CodeUntrustedRoot:
		return true
	default:
		return false
	}
}

// noteGone notes which files on the way of a chain are not there. One that is
// delivered again is.
func (s *State) noteGone(c *chain.Chain) {
	if c.Root == "" {
		return
	}
	for _, list := range [][]Version{s.Delivered, s.Initial} {
		for i := range list {
			v := &list[i]
			if within(c.Root, v.Path) && within(filepath.Dir(v.Path), c.Dir) {
				v.Gone = v.Gone || !slices.ContainsFunc(c.Sources, func(src chain.Source) bool { return src.Path == v.Path })
			}
		}
	}
}

// offerQueue adds the files of the queue that are there, in its order. The queue
// is empty then: what is not taken goes back.
func (t *toucher) offerQueue() {
	queue := t.state.Queue
	t.state.Queue = []string{}
	ways := map[string][]candidate{}
	for _, path := range queue {
		folder := filepath.Dir(path)
		list, ok := ways[folder]
		if !ok && within(t.state.Root, folder) {
			if w := t.walk(folder); w.folder == folder {
				list = t.resolve(w)
			}
			ways[folder] = list
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
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.queued || b.queued {
			return queuedLast(a, b)
		}
		return nearer(a, b)
	})
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
		if !c.twin && !slices.ContainsFunc(list, again) && !t.state.given(&c.version, t.options.Resolver.ChangedWhen) {
			list = append(list, c)
		}
	}
	return list
}

// byDistance orders files by how near they are to what was touched. A person's
// own file is nearer than that of its folder, which it follows in the chain.
func byDistance(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.order, a.order))
}

// fromRoot orders files from the root down.
func fromRoot(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(strings.Count(a.version.Path, separator), strings.Count(b.version.Path, separator)),
		cmp.Compare(filepath.Dir(a.version.Path), filepath.Dir(b.version.Path)),
		cmp.Compare(a.order, b.order))
}

// queuedLast keeps the order of the queue, behind all else.
func queuedLast(a, b candidate) int {
	switch {
	case a.queued == b.queued:
		return 0
	case a.queued:
		return 1
	default:
		return -1
	}
}

// deliver makes files of candidates, and remembers them.
func (t *toucher) deliver(taken []candidate) ([]File, reminder.Message) {
	// Who has little room gives it to what is nearest, whoever chose.
	slices.SortStableFunc(taken, byDistance)
	room := newRoom(&t.options)
	blocks := map[string]block{}
	for _, c := range taken {
		blocks[c.version.Path] = room.block(*c.source)
	}
	slices.SortStableFunc(taken, fromRoot)
	files := make([]File, 0, len(taken))
	told := make([]reminder.File, 0, len(taken))
	for _, c := range taken {
		b := blocks[c.version.Path]
		f := t.file(c, b)
		files = append(files, f)
		told = append(told, reminder.File{Path: f.Path, MTimeMs: f.MTimeMs, Change: reminder.Change(f.Reason), Block: b.text})
	}
	for _, c := range taken {
		t.state.deliver(c.version)
		for _, d := range t.remarks {
			if d.Path == c.version.Path {
				t.add(d)
			}
		}
	}
	for _, d := range room.diagnostics {
		t.add(d)
	}
	if t.options.Resolver.Delivery == option.DeliverOff {
		return files, reminder.Message{}
	}
	return files, reminder.StyleOf(t.options.Layout).ResolvePaths(told)
}

// file is a candidate as it is delivered.
func (t *toucher) file(c candidate, b block) File {
	f := File{
		Path: c.version.Path, Display: c.source.Display, MTimeMs: c.version.MTimeMs, SizeBytes: c.version.Size,
		Reason: ReasonNew, Delivery: t.options.Resolver.Delivery, Body: b.body,
	}
	if t.state.known(&c.version) {
		f.Reason = ReasonUpdated
	}
	if f.Delivery == option.DeliverBody && b.text == "" {
		f.Delivery = option.DeliverReminder
	}
	return f
}
