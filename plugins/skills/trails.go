package skills

import (
	"container/list"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
)

// Bounds of what is remembered. A thread that is pushed out, or a path, may lose
// a full text from the prompt; read_skill gives it back.
const (
	maxTrails     = 256
	maxPaths      = 512      // of a trail
	maxPathBytes  = 1024     // of a path; a longer one is not remembered
	maxTrailBytes = 64 << 10 // of the paths of a trail together
)

// trailKey tells apart what is remembered. A new epoch forgets: a compaction or a
// clear begins a new text for the model anyway, and what was touched before may
// have nothing to do with what follows.
type trailKey struct {
	workspace, thread, session string
	epoch                      int
}

// trail is what one thread has touched, oldest first, and what that matches.
type trail struct {
	key   trailKey
	paths []string
	bytes int

	// matched are slugs of set in the order in which they came to match; fresh is
	// how many paths at the end were not compared yet.
	set     *skillset.Set
	matched []string
	fresh   int
}

// trails keeps the threads that touched something last. The zero value is ready,
// and safe for concurrent use.
type trails struct {
	mu     sync.Mutex
	recent list.List // of *trail, the latest in front
	index  map[trailKey]*list.Element
}

// keyOf returns the key of a context; not ok without thread and session, where
// conversations could not be told apart.
func keyOf(c *phases.Context) (trailKey, bool) {
	return trailKey{c.WorkspaceID, c.ThreadID, c.SessionID, c.Epoch}, c.ThreadID != "" || c.SessionID != ""
}

// add remembers paths. Relative ones are relative to the working folder.
func (t *trails) add(c *phases.Context, paths []string) {
	key, ok := keyOf(c)
	if !ok || len(paths) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	trail := t.get(key)
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			if c.Dir == "" {
				continue
			}
			path = filepath.Join(c.Dir, path)
		}
		trail.add(filepath.Clean(path))
	}
}

// get finds a trail or makes one.
func (t *trails) get(key trailKey) *trail {
	if e, ok := t.index[key]; ok {
		t.recent.MoveToFront(e)
		found, _ := e.Value.(*trail)
		return found
	}
	made := &trail{key: key}
	if t.index == nil {
		t.index = map[trailKey]*list.Element{}
	}
	t.index[key] = t.recent.PushFront(made)
	if t.recent.Len() > maxTrails {
		if last, ok := t.recent.Remove(t.recent.Back()).(*trail); ok {
			delete(t.index, last.key)
		}
	}
	return made
}

// add remembers one path, and drops the oldest ones where there is no room.
func (t *trail) add(path string) {
	if len(path) > maxPathBytes || strings.ContainsRune(path, 0) || slices.Contains(t.paths, path) {
		return
	}
	t.paths = append(t.paths, path)
	t.bytes += len(path)
	t.fresh++
	drop := 0
	for len(t.paths)-drop > maxPaths || t.bytes > maxTrailBytes {
		t.bytes -= len(t.paths[drop])
		drop++
	}
	t.paths = slices.Delete(t.paths, 0, drop)
	t.fresh = min(t.fresh, len(t.paths))
}

// match returns the slugs of the skills that the working folder matches, sorted,
// and then those that touched paths match, in the order in which they came to.
func (t *trails) match(c *phases.Context, set *skillset.Set) []string {
	var slugs []string
	if c.Dir != "" {
		slugs = appendMatching(slugs, set, c.Dir)
	}
	key, ok := keyOf(c)
	if !ok {
		return slugs
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.index[key]; !known {
		return slugs
	}
	for _, slug := range t.get(key).match(set) {
		if !slices.Contains(slugs, slug) {
			slugs = append(slugs, slug)
		}
	}
	return slugs
}

// match compares the paths that are new, or all of them with a new set.
func (t *trail) match(set *skillset.Set) []string {
	if t.set != set {
		t.set, t.matched, t.fresh = set, nil, len(t.paths)
	}
	for _, path := range t.paths[len(t.paths)-t.fresh:] {
		t.matched = appendMatching(t.matched, set, path)
	}
	t.fresh = 0
	return t.matched
}

// appendMatching appends the slugs of the skills that a path matches, without
// those that are there.
func appendMatching(slugs []string, set *skillset.Set, path string) []string {
	rel, ok := set.Rel(path)
	if !ok {
		return slugs
	}
	for i := range set.Skills {
		if s := &set.Skills[i]; len(s.Globs) > 0 && !slices.Contains(slugs, s.Slug) && s.Matches(rel) {
			slugs = append(slugs, s.Slug)
		}
	}
	return slugs
}
