package backtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
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

// OpenKept opens what was kept under a key in a directory, which it makes if need be; fresh removes it first. A key stands
// for all that the verdicts depend on, beside the files. Other keys' files are removed if there are many.
func OpenKept(dir, key string, fresh bool) (*Kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fmt.Sprintf("%016x.jsonl", digest.Sum64(key)))
	if fresh {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	prune(dir)
	k := &Kept{known: map[uint64]*Tally{}, out: f}
	k.read()
	return k, nil
}

// prune removes the oldest file of a directory if there are too many: each run adds one at most, which is the newest then.
func prune(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")) // the pattern is valid
	changed := func(path string) (at time.Time) {
		if info, err := os.Lstat(path); err == nil {
			at = info.ModTime()
		}
		return at
	}
	if len(paths) > keptFiles {
		_ = os.Remove(slices.MinFunc(paths, func(a, b string) int { return changed(a).Compare(changed(b)) })) // the next run tries again
	}
}

// read reads the lines that are whole: the last one of a killed run may not be.
func (k *Kept) read() {
	lines := bufio.NewScanner(k.out)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		k.size += int64(len(lines.Bytes())) + 1
		if t := newTally(); json.Unmarshal(lines.Bytes(), t) == nil {
			k.known[t.File] = t
		}
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
	if t == nil || !t.Since.Equal(since) && (t.Cut || t.First.Before(since)) {
		return nil
	}
	return t
}

// put keeps the tally of a file. What cannot be written is judged again next time.
func (k *Kept) put(f *File, since time.Time, t *Tally) {
	if k == nil || f.Source == Log {
		return
	}
	t.File, t.Since = f.key(), since
	line, err := json.Marshal(t)
	if err != nil || len(line) > mostLine {
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
	return digest.Sum64(fmt.Sprintf("%s\x00%s\x00%d\x00%d", f.Source, f.Path, f.Size, f.ModTime.UnixNano()))
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
