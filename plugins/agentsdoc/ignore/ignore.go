package ignore

// File is the name of the file of patterns that a folder may hold.
const File = ".gitignore"

// Way is the way from the top of a tree to a folder, and the patterns that were
// found on it. The zero value is the top, without patterns. It is for one
// goroutine.
type Way struct {
	path   []byte // from the top's child to the folder in question, with slashes
	starts []int  // where its names begin
	files  []rules
}

// Enter goes down to a folder.
func (w *Way) Enter(name string) {
	if len(w.starts) > 0 {
		w.path = append(w.path, '/')
	}
	w.starts = append(w.starts, len(w.path))
	w.path = append(w.path, name...)
}

// Leave goes up again, and forgets the patterns of the folder that it leaves.
func (w *Way) Leave() {
	for len(w.files) > 0 && w.files[len(w.files)-1].depth == len(w.starts) {
		w.files = w.files[:len(w.files)-1]
	}
	last := len(w.starts) - 1
	w.path = w.path[:max(w.starts[last]-1, 0)]
	w.starts = w.starts[:last]
}

// Add adds the text of a file of patterns that lies in the folder. Those that
// are added later win. A file that is one too many for the way does not count.
func (w *Way) Add(text string) {
	size := len(text)
	for i := range w.files {
		size += w.files[i].size
	}
	if size <= maxWay {
		w.files = append(w.files, parse(text, len(w.starts)))
	}
}

// Reset makes the folder the top of a tree of its own, to which the patterns of
// the folders above mean nothing.
func (w *Way) Reset() { *w = Way{} }

// Ignored reports whether git ignores the folder, given that it ignores none of
// those above. The nearest file that says something decides.
func (w *Way) Ignored() bool {
	work := maxWork
	for i := len(w.files) - 1; i >= 0; i-- {
		f := &w.files[i]
		if f.depth == len(w.starts) {
			continue // of the folder itself, which they do not speak of
		}
		name := w.path[w.starts[len(w.starts)-1]:]
		if v := f.match(w.path[w.starts[f.depth]:], name, &work); v.at != 0 {
			return v.ignored
		}
	}
	return false
}
