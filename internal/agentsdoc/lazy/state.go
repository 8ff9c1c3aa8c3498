// Package lazy delivers the instruction files of directories that a session reaches after its beginning.
//
// The files between the root and the working directory are in the first prompt. When a tool touches a path elsewhere,
// [State.Touch] answers with the files that apply to it and that the session has not been given, and with the
// reminder for the model. [State.Changed] reports changed files during the session, [State.Move] when it continues in
// another directory, and [State.Resume] when it resumes. A file that a host reads for the model counts as delivered
// ([State.Read]).
//
// All are functions of a [State], options and a view of the file system; no call fails. The caller delivers what they
// return: if that may fail, keep a [State.Clone] to go back to. A State has no lock of its own.
//
// # Rules
//
//   - A directory counts as itself, a file by its directory, and a missing path by its nearest existing directory.
//   - A file is delivered in an epoch when its content, by its real path and [chain.Source].Digest (in the codelia
//     preset its time, too), is not what was delivered of it last. Covered directories are looked at again, so that
//     new and changed files are found. A delivered file that is gone is reported by the next touch.
//   - The options bound the files of one event; the nearest to what was touched go first. The others wait in the
//     queue for the next event, whatever it touches, and are dropped when they are gone or the epoch ends.
//   - With bodies, the options bound the bytes of a file and of an event, the nearest file first. What is cut says
//     so, and a file beyond the budget is named, to be read by the model.
//   - Outside of the root there is no answer. A nested repository inherits nothing from the directories above it.
//     Directories that tools fill (node_modules, vendor, third_party, .venv, target) or git ignores are skipped,
//     unless the working directory is in them. Patterns are read from files inside of the root only.
//   - A link to a directory inside of the root is followed; one that leaves it ends the way above it.
package lazy

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// Schema is the version of [State] that this package writes and reads.
const Schema = 1

// Bounds of a state in memory, in entries; see also [MaxBytes].
const (
	maxDelivered = 512
	maxCovered   = 256
	maxQueue     = 512
)

// State is what a session must remember of its instruction files. It comes from [Begin] or [Decode]; the zero value
// has no root and no files. It is data, and safe for one goroutine at a time.
type State struct {
	Schema  int      `json:"schema"`  // the constant of this name
	Epoch   int      `json:"epoch"`   // the number that the host gave the epoch
	Root    string   `json:"root"`    // of the tree; empty if there are no files
	Dir     string   `json:"dir"`     // the working directory
	Markers []string `json:"markers"` // the names that made Root one
	// Initial are the files of the chain as last reported to the session, in chain order, also those without text in
	// the prompt.
	Initial []Version `json:"initial"`
	// Covered are the directories that were resolved, the latest last. Remarks on their files were made; no file is
	// skipped because of it.
	Covered   []string  `json:"covered"`
	Delivered []Version `json:"delivered"` // versions that the model was given in the epoch, the latest last
	Queue     []string  `json:"queue"`     // paths of files that wait for the next event
}

// Version is one content of one file.
type Version struct {
	Path     string `json:"path"`                // absolute, as reported
	RealPath string `json:"real_path,omitempty"` // behind links; empty if that is Path
	SHA256   string `json:"sha256"`              // [chain.Source.Digest], so that a changed import is another version
	MTimeMs  int64  `json:"mtimeMs"`
	Size     int64  `json:"sizeBytes"`
	InPrompt bool   `json:"in_prompt,omitempty"` // of an initial version: its text is in the prompt
	Gone     bool   `json:"gone,omitempty"`      // missing when it was last looked up
}

// Begin is the state of a session, or of an epoch of it, whose first prompt has the rendering of a chain: the files
// with text in it count as delivered.
func Begin(epoch int, c chain.Chain, r chain.Rendering) State {
	s := State{
		Schema: Schema, Epoch: epoch, Root: c.Root, Dir: c.Dir, Markers: clone(c.Options.Markers),
		Initial: []Version{}, Covered: []string{}, Delivered: []Version{}, Queue: []string{},
	}
	sources := r.Sources
	if sources == nil {
		sources = c.Sources
	}
	for i := range sources {
		if src := &sources[i]; present(src) {
			v := versionOf(src)
			v.InPrompt = r.Text != "" && (src.State == chain.StateKept || src.State == chain.StateTruncated)
			s.Initial = append(s.Initial, v)
		}
	}
	s.coverInitial()
	return s
}

// present reports whether a source is part of its chain, even if it was omitted.
func present(src *chain.Source) bool {
	return src.State != chain.StateSkipped && src.State != "" && src.SHA256 != ""
}

func versionOf(src *chain.Source) Version {
	v := Version{Path: src.Path, SHA256: src.Digest(), MTimeMs: src.MTimeMs, Size: src.Bytes}
	if src.RealPath != src.Path {
		v.RealPath = src.RealPath
	}
	return v
}

func (v *Version) real() string { return cmp.Or(v.RealPath, v.Path) }

func (v *Version) sameFile(w *Version) bool { return v.Path == w.Path || v.real() == w.real() }

func (v *Version) same(w *Version, rule chain.ChangedWhen) bool {
	return v.SHA256 == w.SHA256 && (rule != chain.ChangedByTimeOrHash || v.MTimeMs == w.MTimeMs)
}

// Clone returns a copy that shares nothing with the state.
func (s *State) Clone() State {
	c := *s
	c.Markers, c.Covered, c.Queue = clone(s.Markers), clone(s.Covered), clone(s.Queue)
	c.Initial, c.Delivered = clone(s.Initial), clone(s.Delivered)
	return c
}

func clone[T any](list []T) []T { return append([]T{}, list...) }

// NewEpoch forgets what was delivered since the first prompt, and what waits. It is for a host that keeps its prompt;
// one that compiles it again calls [Begin].
func (s *State) NewEpoch(epoch int) {
	s.Epoch = epoch
	s.Delivered, s.Queue, s.Covered = []Version{}, []string{}, []string{}
	for i := range s.Initial {
		s.Initial[i].Gone = false
	}
	s.coverInitial()
}

// Read records that the host has read a file of the tree for the model, in its current version: it counts as
// delivered if it is an instruction file of its directory, which the answer says.
func (s *State) Read(view chain.FS, o chain.Options, path string) bool {
	t := newToucher(s, view, o)
	path, ok := t.inside(path)
	if !ok {
		return false
	}
	w := t.walk(path)
	if w.directory != filepath.Dir(path) {
		return false
	}
	c := chain.ResolveTouched(view, w.directory, t.options)
	i := slices.IndexFunc(c.Sources, func(src chain.Source) bool { return src.Path == path && present(&src) })
	if i < 0 {
		return false
	}
	s.deliver(versionOf(&c.Sources[i]))
	return true
}

func (s *State) given(v *Version, rule chain.ChangedWhen) bool {
	is := func(w Version) bool { return v.real() == w.real() && v.same(&w, rule) }
	return slices.ContainsFunc(s.Delivered, is) ||
		slices.ContainsFunc(s.Initial, func(w Version) bool { return w.InPrompt && is(w) })
}

// stands reports whether a version is what the model was given last of its file. What comes back of a file of the prompt is
// reported by [State.Changed].
func (s *State) stands(v *Version, rule chain.ChangedWhen) bool {
	if slices.ContainsFunc(s.Initial, func(w Version) bool { return v.sameFile(&w) }) {
		return s.given(v, rule)
	}
	for _, w := range slices.Backward(s.Delivered) {
		if v.sameFile(&w) {
			return !w.Gone && v.same(&w, rule)
		}
	}
	return false
}

func (s *State) known(v *Version) bool {
	return slices.ContainsFunc(s.Delivered, func(w Version) bool { return v.sameFile(&w) }) ||
		slices.ContainsFunc(s.Initial, func(w Version) bool { return w.InPrompt && v.sameFile(&w) })
}

// deliver remembers a version as the latest that the model was given.
func (s *State) deliver(v Version) {
	v.InPrompt, v.Gone = false, false
	s.Queue = slices.DeleteFunc(s.Queue, func(path string) bool { return path == v.Path })
	s.Delivered = slices.DeleteFunc(s.Delivered, func(w Version) bool {
		return v.real() == w.real() && v.SHA256 == w.SHA256 && v.MTimeMs == w.MTimeMs
	})
	s.Delivered = append(s.Delivered, v)
	if len(s.Delivered) > maxDelivered && !s.dropWorn() {
		s.Delivered = s.Delivered[1:]
	}
}

func (s *State) cover(directory string) {
	if n := len(s.Covered); n > 0 && s.Covered[n-1] == directory {
		return
	}
	s.Covered = slices.DeleteFunc(s.Covered, func(other string) bool { return other == directory })
	s.Covered = append(s.Covered, directory)
	if over := len(s.Covered) - maxCovered; over > 0 {
		s.Covered = slices.Delete(s.Covered, 0, over)
	}
}

// covers reports whether a directory was resolved: by itself, or on the way to one that is covered.
func (s *State) covers(directory string) bool {
	return slices.ContainsFunc(s.Covered, func(covered string) bool { return chain.Within(directory, covered) })
}

func (s *State) coverInitial() {
	for i := range s.Initial {
		if v := &s.Initial[i]; v.InPrompt && chain.Within(s.Root, v.Path) {
			s.cover(filepath.Dir(v.Path))
		}
	}
}
