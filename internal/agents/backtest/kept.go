package backtest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/config"
)

// Kept has the tallies of files that were judged before under the same key, in a file of one JSON value a line that each
// finished file adds to. Nil keeps nothing. Threads of the log are not kept: what is erased there shall not be here.
type Kept struct {
	mu    sync.Mutex
	known map[uint64]*Tally
	out   *os.File
	size  int64
}

// Bounds of what is kept. A file that is larger than mostKept gets no more lines.
const (
	mostKept  = 64 << 20
	mostLine  = 32 << 20
	keptFiles = 16
)

type keptLine struct {
	File  uint64    `json:"file"`
	Since time.Time `json:"since"`
	Tally *Tally    `json:"tally"`
}

// OpenKept opens what was kept under a key in a directory, which it makes if need be; fresh removes it first. A key stands
// for all that the verdicts depend on, beside the files. Other keys' files are removed if there are many.
func OpenKept(dir, key string, fresh bool) (*Kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fmt.Sprintf("%016x.jsonl", hashed(key)))
	if fresh {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	prune(dir, filepath.Base(path))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	k := &Kept{known: map[uint64]*Tally{}, out: f}
	k.read()
	return k, nil
}

// prune removes the oldest files of a directory, so that there are not too many.
func prune(dir, but string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")) // the pattern is valid
	paths = slices.DeleteFunc(paths, func(p string) bool { return filepath.Base(p) == but })
	changed := func(p string) int64 {
		if info, err := os.Lstat(p); err == nil {
			return info.ModTime().UnixNano()
		}
		return 0
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(changed(b), changed(a)) })
	for _, p := range paths[min(len(paths), keptFiles-1):] {
		_ = os.Remove(p) // the next run tries again
	}
}

// read reads the lines that are whole: the last one of a killed run may not be.
func (k *Kept) read() {
	lines := bufio.NewScanner(k.out)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		k.size += int64(len(lines.Bytes())) + 1
		var l keptLine
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Tally == nil {
			continue
		}
		l.Tally.since = l.Since
		k.known[l.File] = l.Tally
	}
}

// get returns the tally of an unchanged file. What began before the period belongs to that period alone.
func (k *Kept) get(f *File, since time.Time) *Tally {
	if k == nil || f.Source == Log {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.known[f.key()]
	if t == nil || !t.since.Equal(since) && (t.Cut || t.First.Before(since)) {
		return nil
	}
	return t
}

// put keeps the tally of a file. What cannot be written is judged again next time.
func (k *Kept) put(f *File, since time.Time, t *Tally) {
	if k == nil || f.Source == Log {
		return
	}
	line, err := json.Marshal(keptLine{f.key(), since, t})
	if err != nil || len(line) > mostLine || bytes.ContainsRune(line, '\n') {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size += int64(len(line)) + 1; k.size <= mostKept {
		_, _ = k.out.Write(append(line, '\n')) // see above
	}
}

// Close closes the file, and removes it if nothing of it may be used by a later run.
func (k *Kept) Close(remove bool) error {
	if k == nil {
		return nil
	}
	err := k.out.Close()
	if remove {
		err = errors.Join(err, os.Remove(k.out.Name()))
	}
	return err
}

// key identifies a file and its content.
func (f *File) key() uint64 {
	return hashed(fmt.Sprintf("%s\x00%s\x00%d\x00%d", f.Source, f.Path, f.Size, f.ModTime.UnixNano()))
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
		var value any
		_ = json.Unmarshal(p.Config, &value) // it was checked when it was loaded
		named(value, func(path string) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			paths, _ := filepath.Glob(filepath.Join(path, "*")) // a path that is not a pattern has no more files
			for _, path := range append([]string{path}, paths[:min(len(paths), mostNamed)]...) {
				if info, err := os.Stat(path); err == nil {
					parts = append(parts, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
				}
			}
		})
	}
	return strings.Join(parts, "\x00"), whole
}

const mostNamed = 1000

// named calls f with each text in a JSON value that may be a path.
func named(value any, f func(path string)) {
	switch v := value.(type) {
	case string:
		if len(v) < 1024 && !strings.ContainsAny(v, "\x00\n") {
			f(v)
		}
	case []any:
		for _, item := range v {
			named(item, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			named(v[key], f)
		}
	}
}
