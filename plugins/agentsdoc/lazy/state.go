package lazy

import (
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// Schema is the version of [State] that this package writes and reads.
const Schema = 1

// Bounds of a state in memory, in entries. What is encoded has one in bytes.
const (
	maxDelivered = 512
	maxCovered   = 256
	maxQueue     = 512
)

// State is what a session must remember of its instruction files. It comes from
// [Begin] or [Decode]; the zero value has no root, so nothing lies in it. It is
// data, and safe for one goroutine at a time.
type State struct {
	// Schema is the constant of this name.
	Schema int `json:"schema"`
	// Epoch is the host's number of the epoch that all below belongs to.
	Epoch int `json:"epoch"`
	// Root and Dir are the root of the tree and the working folder, as the chain
	// had them. Without a root there are no files.
	Root string `json:"root"`
	Dir  string `json:"dir"`
	// Markers are the names that made Root one.
	Markers []string `json:"markers"`
	// Initial are the files of the chain as the session was told of them last,
	// in chain order, those included of which there is no text in the prompt.
	Initial []Version `json:"initial"`
	// Covered are the folders that were resolved, the latest last. Remarks on
	// their files were made; no file is ever passed over because of it.
	Covered []string `json:"covered"`
	// Delivered are the versions of files that the model was given in the epoch,
	// the latest last.
	Delivered []Version `json:"delivered"`
	// Queue are the paths of files that wait for the next event.
	Queue []string `json:"queue"`
}

// Version is one content of one file.
type Version struct {
	// Path is absolute, as it was told.
	Path string `json:"path"`
	// RealPath is where the file is, behind links; empty if that is Path.
	RealPath string `json:"real_path,omitempty"`
	// SHA256 is the hash of the file's bytes; of one that imports others, that of
	// its text with theirs, so that a changed import is another version.
	SHA256  string `json:"sha256"`
	MTimeMs int64  `json:"mtimeMs"`
	Size    int64  `json:"sizeBytes"`
	// Told says, of an initial version, that its text is before the model.
	Told bool `json:"told,omitempty"`
	// Gone says that there was no such file when it was looked for last.
	Gone bool `json:"gone,omitempty"`
}

// Begin is the state of a session, or of an epoch of it, whose first prompt has
// the rendering of a chain: the files with text in it count as delivered.
func Begin(epoch int, c chain.Chain, r chain.Rendering) State {
	s := State{
		Schema: Schema, Epoch: epoch, Root: c.Root, Dir: c.Dir,
		Markers: append([]string{}, c.Options.Markers...),
		Initial: initial(c, r),
		Covered: []string{}, Delivered: []Version{}, Queue: []string{},
	}
	s.coverInitial()
	return s
}

// initial are the files that the rendering of a chain says anything of.
func initial(c chain.Chain, r chain.Rendering) []Version {
	sources := r.Sources
	if sources == nil {
		sources = c.Sources
	}
	list := []Version{}
	for i := range sources {
		if src := &sources[i]; present(src) {
			v := versionOf(src)
			v.Told = r.Text != "" && (src.State == chain.StateKept || src.State == chain.StateTruncated)
			list = append(list, v)
		}
	}
	return list
}

// present reports whether a source is part of its chain, be it without room.
func present(src *chain.Source) bool {
	switch src.State {
	case chain.StateKept, chain.StateTruncated, chain.StateOmitted, chain.StateDuplicate:
		return src.SHA256 != ""
	default:
		return false
	}
}

// versionOf is what is remembered of a source.
func versionOf(src *chain.Source) Version {
	v := Version{Path: src.Path, RealPath: src.RealPath, SHA256: src.Digest(), MTimeMs: src.MTimeMs, Size: src.Bytes}
	if v.RealPath == v.Path {
		v.RealPath = ""
	}
	return v
}

// real is where the file is.
func (v *Version) real() string {
	if v.RealPath == "" {
		return v.Path
	}
	return v.RealPath
}

// sameFile reports whether two versions are of one file.
func (v *Version) sameFile(w *Version) bool { return v.Path == w.Path || v.real() == w.real() }

// same reports whether two versions of one file have one content, by the rule.
func (v *Version) same(w *Version, rule option.ChangedWhen) bool {
	return v.SHA256 == w.SHA256 && (rule != option.ChangedByTimeOrHash || v.MTimeMs == w.MTimeMs)
}

// Clone returns a copy that shares nothing with the state.
func (s *State) Clone() State {
	c := *s
	c.Markers, c.Covered, c.Queue = clone(s.Markers), clone(s.Covered), clone(s.Queue)
	c.Initial, c.Delivered = clone(s.Initial), clone(s.Delivered)
	return c
}

// clone copies a list, and makes an empty one of none.
func clone[T any](list []T) []T { return append([]T{}, list...) }

// NewEpoch forgets what was delivered since the first prompt, and what waits. It
// is for a host that goes on with the prompt that it has; one that makes it anew
// calls [Begin].
func (s *State) NewEpoch(epoch int) {
	s.Epoch = epoch
	s.Delivered, s.Queue, s.Covered = []Version{}, []string{}, []string{}
	for i := range s.Initial {
		s.Initial[i].Gone = false
	}
	s.coverInitial()
}

// Read says that the host has read a file of the tree for the model, in the
// version that is there now: it counts as delivered if it is an instruction file
// of its folder, which the answer tells. Where its text stands nearer to what is
// touched as well, that counts as delivered, too.
func (s *State) Read(view chain.FS, o chain.Options, path string) bool {
	t := newToucher(s, view, o)
	path, ok := t.inside(path)
	if !ok {
		return false
	}
	w := t.walk(path)
	if w.folder != filepath.Dir(path) {
		return false
	}
	c := chain.ResolveTouched(view, w.folder, t.options)
	i := slices.IndexFunc(c.Sources, func(src chain.Source) bool { return src.Path == path && present(&src) })
	if i < 0 {
		return false
	}
	s.deliver(versionOf(&c.Sources[i]))
	return true
}

// given reports whether the model was given a version.
func (s *State) given(v *Version, rule option.ChangedWhen) bool {
	is := func(w Version) bool { return v.real() == w.real() && v.same(&w, rule) }
	return slices.ContainsFunc(s.Delivered, is) ||
		slices.ContainsFunc(s.Initial, func(w Version) bool { return w.Told && is(w) })
}

// known reports whether the model was given any version of the file.
func (s *State) known(v *Version) bool {
	return slices.ContainsFunc(s.Delivered, func(w Version) bool { return v.sameFile(&w) }) ||
		slices.ContainsFunc(s.Initial, func(w Version) bool { return w.Told && v.sameFile(&w) })
}

// deliver remembers a version as the latest that the model was given.
func (s *State) deliver(v Version) {
	v.Told, v.Gone = false, false
	s.Queue = slices.DeleteFunc(s.Queue, func(path string) bool { return path == v.Path })
	s.Delivered = slices.DeleteFunc(s.Delivered, func(w Version) bool {
		return v.real() == w.real() && v.SHA256 == w.SHA256 && v.MTimeMs == w.MTimeMs
	})
	s.Delivered = append(s.Delivered, v)
	for len(s.Delivered) > maxDelivered {
		s.forgetOne()
	}
}

// cover remembers that a folder was resolved.
func (s *State) cover(folder string) {
	if n := len(s.Covered); n > 0 && s.Covered[n-1] == folder {
		return
	}
	s.Covered = slices.DeleteFunc(s.Covered, func(other string) bool { return other == folder })
	s.Covered = append(s.Covered, folder)
	if over := len(s.Covered) - maxCovered; over > 0 {
		s.Covered = slices.Delete(s.Covered, 0, over)
	}
}

// covers reports whether a folder was resolved: by itself, or on the way to one
// that is covered.
func (s *State) covers(folder string) bool {
	return slices.ContainsFunc(s.Covered, func(covered string) bool { return within(folder, covered) })
}

// coverInitial covers the folders of the files that are in the first prompt.
func (s *State) coverInitial() {
	for i := range s.Initial {
		if v := &s.Initial[i]; v.Told && within(s.Root, v.Path) {
			s.cover(filepath.Dir(v.Path))
		}
	}
}
