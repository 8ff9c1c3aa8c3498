package backtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Kept has the tallies of files that were judged before under the same key, each in a file of its own. Nil keeps nothing.
// Threads of the log are not kept: what is erased there shall not be here.
type Kept struct {
	dir  string
	size atomic.Int64 // of what was put
}

// Bounds of what is kept: bytes that one run adds, and keys.
const (
	mostKept = 64 << 20
	keptKeys = 16
)

// OpenKept opens what was kept under a key below a directory, which it makes if need be; fresh removes it first. A key stands
// for all that the verdicts depend on, beside the files. If there are too many keys, the oldest is removed.
func OpenKept(below, key string, fresh bool) (*Kept, error) {
	k := &Kept{dir: filepath.Join(below, fmt.Sprintf("%016x", digest.Sum64(key)))}
	if fresh {
		if err := os.RemoveAll(k.dir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, err
	}
	keys, _ := filepath.Glob(filepath.Join(below, "*")) // the pattern is valid
	changed := func(path string) (at time.Time) {
		if info, err := os.Lstat(path); err == nil {
			at = info.ModTime()
		}
		return at
	}
	if len(keys) > keptKeys { // this one is new, then
		_ = os.RemoveAll(slices.MinFunc(keys, func(a, b string) int { return changed(a).Compare(changed(b)) })) // the next run tries again
	}
	return k, nil
}

// get returns the tally of an unchanged file. What began before the period belongs to that period alone.
func (k *Kept) get(f *File, since time.Time) *Tally {
	if k == nil || f.Source == Log {
		return nil
	}
	kept, err := os.ReadFile(k.path(f))
	t := newTally()
	if err != nil || json.Unmarshal(kept, t) != nil || t.Size != f.Size || !t.ModTime.Equal(f.ModTime) || !t.Since.Equal(since) && (t.Cut || t.First.Before(since)) {
		return nil
	}
	return t
}

// put keeps the tally of a file. What cannot be written, or not to its end, is judged again next time.
func (k *Kept) put(f *File, since time.Time, t *Tally) {
	if k == nil || f.Source == Log {
		return
	}
	t.Size, t.ModTime, t.Since = f.Size, f.ModTime, since
	if kept, err := json.Marshal(t); err == nil && k.size.Add(int64(len(kept))) <= mostKept {
		_ = os.WriteFile(k.path(f), kept, 0o600) // see above
	}
}

// Remove removes what was kept, if no later run may use it.
func (k *Kept) Remove() error {
	if k == nil {
		return nil
	}
	return os.RemoveAll(k.dir)
}

// path is where the tally of a file is.
func (k *Kept) path(f *File) string {
	return filepath.Join(k.dir, fmt.Sprintf("%016x.json", digest.Sum64(f.Source+"\x00"+f.Path)))
}

// Key is the part of a key that stands for a configuration: with the files that it names, by size and time. dir is its
// directory. whole reports whether the verdicts depend on nothing else, as far as is known: other programs may read what they
// like.
func Key(cfg *config.Config, dir string) (key string, whole bool) {
	public, err := cfg.Public()
	parts := []string{string(public)}
	whole = err == nil
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		whole = whole && p.Builtin != "" && p.Builtin != "commandhooks"
		values := jsonscan.Reader(p.Config)
		for value, err := values.ReadToken(); err == nil; value, err = values.ReadToken() {
			if value.Kind() == '"' {
				parts = append(parts, state(dir, value.String())...)
			}
		}
	}
	return strings.Join(parts, "\x00"), whole
}

const (
	mostNamed = 1000
	mostPath  = 1024
)

// state returns size and time of the file that a text names, if it does, and of the files in that directory.
func state(dir, path string) (parts []string) {
	if len(path) > mostPath || strings.ContainsAny(path, "\x00\n") {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	paths, _ := filepath.Glob(filepath.Join(path, "*")) // a path that is not a pattern has no more files
	for _, path := range append([]string{path}, paths[:min(len(paths), mostNamed)]...) {
		if info, err := os.Stat(path); err == nil {
			parts = append(parts, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
		}
	}
	return parts
}
