package skills

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/phases"
)

const maxSets = 8

// library keeps the sets of recent working directories, and checks their files each time: one stat a file. It is safe
// for concurrent use.
type library struct {
	options skillset.Options
	given   func(agent string) []string // the directories of skills that an agent lists by itself
	now     func() time.Time

	mu     sync.Mutex
	recent []shelf // the latest first
}

// shelf is the set of one working directory. Unless settled it is resolved again next time: its files may change
// unnoticed.
type shelf struct {
	dir, root, agent string
	set              *skillset.Set
	settled          bool
}

// set returns the skills for a context's working directory as they are now.
func (l *library) set(c *phases.Context) *skillset.Set {
	agent := c.Agent()
	same := func(s shelf) bool { return s.dir == c.Dir && s.root == c.DirRoot && s.agent == agent }
	l.mu.Lock()
	var known shelf
	if i := slices.IndexFunc(l.recent, same); i >= 0 {
		known = l.recent[i]
	}
	l.mu.Unlock()
	if known.set != nil && known.settled && known.set.Fresh() {
		return known.set
	}
	now, o := l.now(), l.options
	o.Boundary, o.Given = c.DirRoot, l.given(agent)
	set := skillset.Resolve(c.Dir, o)
	l.mu.Lock()
	defer l.mu.Unlock()
	others := slices.DeleteFunc(l.recent, same)
	l.recent = append([]shelf{{c.Dir, c.DirRoot, agent, set, set.Settled(now)}}, others[:min(len(others), maxSets-1)]...)
	return set
}

// Bounds of what is remembered. Beyond them a prompt may lose a full text; read_skill gives it back.
const (
	maxTrails     = 256
	maxPaths      = 512      // of a trail
	maxPathBytes  = 1024     // of a path; a longer one is not remembered
	maxTrailBytes = 64 << 10 // of the paths of a trail together
)

// trailKey names a trail. A new epoch begins a new one, because a compaction begins a new text for the model.
type trailKey struct {
	workspace, thread, session string
	epoch                      int
}

// trail is what one thread has touched, oldest first, and what that matches.
type trail struct {
	key   trailKey
	paths []string
	bytes int

	// matched are slugs of set in the order of their first match; the last fresh paths were not compared yet.
	set     *skillset.Set
	matched []string
	fresh   int
}

// trails keeps the trails of recent threads. The zero value is ready, and safe for concurrent use.
type trails struct {
	mu     sync.Mutex
	recent []*trail // the latest first
}

// keyOf is not ok without thread and session, where conversations could not be told apart.
func keyOf(c *phases.Context) (trailKey, bool) {
	return trailKey{c.WorkspaceID, c.ThreadID, c.SessionID, c.Epoch}, c.ThreadID != "" || c.SessionID != ""
}

// add remembers paths, relative to the working directory.
func (t *trails) add(c *phases.Context, paths []string) {
	key, ok := keyOf(c)
	if !ok || len(paths) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.get(key)
	if found == nil {
		found = &trail{key: key}
		t.recent = slices.Insert(t.recent[:min(len(t.recent), maxTrails-1)], 0, found)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			if c.Dir == "" {
				continue
			}
			path = filepath.Join(c.Dir, path)
		}
		found.add(filepath.Clean(path))
	}
}

// get returns a trail, now the latest, or nil.
func (t *trails) get(key trailKey) *trail {
	i := slices.IndexFunc(t.recent, func(t *trail) bool { return t.key == key })
	if i < 0 {
		return nil
	}
	found := t.recent[i]
	t.recent = slices.Insert(slices.Delete(t.recent, i, i+1), 0, found)
	return found
}

// add remembers one path, and drops the oldest ones above the bounds.
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

// match returns the slugs that the working directory matches, sorted, and then those that touched paths match, in the
// order of their first match.
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
	if found := t.get(key); found != nil {
		// Only new paths are compared, or all of them with a new set.
		if found.set != set {
			found.set, found.matched, found.fresh = set, nil, len(found.paths)
		}
		for _, path := range found.paths[len(found.paths)-found.fresh:] {
			found.matched = appendMatching(found.matched, set, path)
		}
		found.fresh = 0
		for _, slug := range found.matched {
			if !slices.Contains(slugs, slug) {
				slugs = append(slugs, slug)
			}
		}
	}
	return slugs
}

// appendMatching appends the slugs of the skills that a path matches.
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
