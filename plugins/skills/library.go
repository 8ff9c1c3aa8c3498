package skills

import (
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
)

// maxSets bounds the working folders whose skills are kept in memory.
const maxSets = 8

// library keeps the sets of the working folders that were asked for last, and
// looks at their files at each question: one stat a file. It is safe for
// concurrent use.
type library struct {
	view    skillset.FS
	options skillset.Options
	now     func() time.Time

	mu     sync.Mutex
	recent []shelf // the latest first
}

// shelf is the set of one working folder. One that is not settled is made anew at
// the next question, because its files may change without showing it.
type shelf struct {
	dir, root string
	set       *skillset.Set
	settled   bool
}

func newLibrary(view skillset.FS, o skillset.Options, now func() time.Time) *library {
	return &library{view: view, options: o, now: now}
}

// set returns the skills for the working folder of a context as they are now. Two
// questions at once may both look; their answers are equal.
func (l *library) set(c *phases.Context) *skillset.Set {
	known := l.get(c)
	if known.set != nil && known.settled && known.set.Fresh(l.view) {
		return known.set
	}
	now, o := l.now(), l.options
	o.Boundary = c.DirRoot
	set := skillset.Resolve(l.view, c.Dir, o)
	l.keep(shelf{c.Dir, c.DirRoot, set, set.Settled(now)})
	return set
}

// get returns the shelf of a folder, which is empty if it is not kept.
func (l *library) get(c *phases.Context) shelf {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.recent {
		if s.dir == c.Dir && s.root == c.DirRoot {
			return s
		}
	}
	return shelf{}
}

// keep puts a shelf in front.
func (l *library) keep(s shelf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = slices.DeleteFunc(l.recent, func(other shelf) bool { return other.dir == s.dir && other.root == s.root })
	l.recent = slices.Insert(l.recent, 0, s)
	if len(l.recent) > maxSets {
		l.recent = slices.Delete(l.recent, maxSets, len(l.recent))
	}
}
