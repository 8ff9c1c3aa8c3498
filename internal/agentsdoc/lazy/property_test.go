package lazy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
)

// model is what a session must do, in the simplest words: a set of files with a
// content, of what was delivered, and of what waits.
type model struct {
	base      string
	files     map[string]int  // content of the instruction file, by directory
	delivered map[string]bool // "directory content"
	initial   []string        // the part of it that outlives an epoch
	waiting   map[string]bool // directories whose file has to be delivered
}

// directories are all of the tree, root first.
func directories() []string {
	list := []string{""}
	for _, a := range []string{"x", "y"} {
		list = append(list, a)
		for _, b := range []string{"p", "q"} {
			list = append(list, a+"/"+b, a+"/"+b+"/r", a+"/"+b+"/r/s")
		}
	}
	return list
}

func key(directory string, content int) string { return fmt.Sprintf("%q %d", directory, content) }

// apply are the directories from the root to one.
func apply(directory string) []string {
	list := []string{""}
	path := ""
	for _, name := range split(directory) {
		path = filepath.Join(path, name)
		list = append(list, path)
	}
	return list
}

// write gives a directory's file a content, or removes it.
func (m *model) write(t *testing.T, directory string, content int) {
	t.Helper()
	name := directory + "/AGENTS.md"
	if content < 0 {
		delete(m.files, directory)
		remove(t, m.base, name)
		return
	}
	m.files[directory] = content
	put(t, m.base, name, fmt.Sprintf("%s: version %d\n", directory, content))
}

// want adds what applies to a directory to what waits, and drops what need not wait
// any more.
func (m *model) want(directories ...string) {
	for _, directory := range directories {
		m.waiting[directory] = true
	}
	for directory := range m.waiting {
		content, ok := m.files[directory]
		if !ok || m.delivered[key(directory, content)] {
			delete(m.waiting, directory)
		}
	}
}

// give notes what is delivered of a directory, in place of what was. Of one of the prompt, every content counts as given.
func (m *model) give(directory string) {
	if !m.inPrompt(directory) {
		maps.DeleteFunc(m.delivered, func(k string, _ bool) bool { return strings.HasPrefix(k, fmt.Sprintf("%q ", directory)) })
	}
	if content, ok := m.files[directory]; ok {
		m.delivered[key(directory, content)] = true
	}
}

func (m *model) inPrompt(directory string) bool {
	return slices.ContainsFunc(m.initial, func(k string) bool { return strings.HasPrefix(k, fmt.Sprintf("%q ", directory)) })
}

// check compares an answer with what must be, and takes what was delivered.
func (m *model) check(t *testing.T, got Touched, most int) {
	t.Helper()
	got.Files = slices.DeleteFunc(got.Files, func(f File) bool {
		if f.Reason != reminder.Removed {
			return false
		}
		directory, _ := filepath.Rel(m.base, filepath.Dir(f.Path))
		directory = strings.TrimPrefix(directory, ".")
		if _, there := m.files[directory]; there || m.inPrompt(directory) {
			t.Fatalf("%q was reported as removed", directory)
		}
		m.give(directory)
		return true
	})
	if want := min(most, len(m.waiting)); len(got.Files) != want {
		t.Fatalf("%d files, want %d of %v", len(got.Files), want, m.waiting)
	}
	for _, f := range got.Files {
		directory := strings.TrimSuffix(strings.TrimSuffix(f.Display, "AGENTS.md"), "/")
		if !m.waiting[directory] {
			t.Fatalf("%s was delivered, and %v waits", directory, m.waiting)
		}
		text := fmt.Sprintf("%s: version %d", directory, m.files[directory])
		if f.Body != text {
			t.Fatalf("%s was delivered as %q", directory, f.Body)
		}
		m.give(directory)
		delete(m.waiting, directory)
	}
	if got.Pending != len(m.waiting) {
		t.Fatalf("%d pending, and %v waits", got.Pending, m.waiting)
	}
	if !slices.IsSortedFunc(got.Files, func(a, b File) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") }) {
		t.Fatal("not listed from the root down")
	}
}

// TestTouchAgainstModel plays random sessions against the model: nothing twice,
// never more than allowed, and in the end everything.
func TestTouchAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(agentsdoctest.Rounds(40)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		all := directories()
		m := &model{base: build(t, files{".git/": ""}), files: map[string]int{}, delivered: map[string]bool{}, waiting: map[string]bool{}}
		for _, directory := range all {
			put(t, m.base, directory+"/", "")
			if rng.IntN(3) > 0 {
				m.write(t, directory, 0)
			}
		}
		o := chain.Default()
		o.Resolver.MaxFiles = 1 + rng.IntN(4)
		dir := all[rng.IntN(len(all))]
		s := begin(m.base, dir, o)
		for _, directory := range apply(dir) {
			if content, ok := m.files[directory]; ok {
				m.delivered[key(directory, content)] = true
				m.initial = append(m.initial, key(directory, content))
			}
		}
		for range 60 {
			m.event(t, rng, &s, o)
		}
		m.drain(t, &s, o)
	}
}

// event is one thing that happens.
func (m *model) event(t *testing.T, rng *rand.Rand, s *State, o chain.Options) {
	t.Helper()
	all := directories()
	directory := all[rng.IntN(len(all))]
	switch rng.IntN(10) {
	case 0, 1, 2:
		m.write(t, directory, rng.IntN(4)-1)
	case 3:
		if rng.IntN(4) == 0 {
			s.NewEpoch(s.Epoch + 1)
			clear(m.delivered)
			clear(m.waiting)
			for _, k := range m.initial {
				m.delivered[k] = true
			}
		}
	case 4:
		path := filepath.Join(m.base, directory, "AGENTS.md")
		_, there := m.files[directory]
		if got := s.Read(chain.OS{}, o, path); got != there {
			t.Fatalf("read %s: %t", path, got)
		}
		if there {
			m.give(directory)
			delete(m.waiting, directory)
		}
	default:
		other := all[rng.IntN(len(all))]
		paths := []string{filepath.Join(m.base, directory, "new.go"), filepath.Join(m.base, other)}
		m.want(append(apply(directory), apply(other)...)...)
		m.check(t, s.Touch(chain.OS{}, o, paths), o.Resolver.MaxFiles)
	}
	*s = again(t, *s)
}

// drain touches every directory until nothing waits: then everything that applies
// was delivered.
func (m *model) drain(t *testing.T, s *State, o chain.Options) {
	t.Helper()
	for _, directory := range directories() {
		m.want(apply(directory)...)
		m.check(t, s.Touch(chain.OS{}, o, []string{filepath.Join(m.base, directory)}), o.Resolver.MaxFiles)
	}
	for n := 0; len(m.waiting) > 0; n++ {
		if n > 100 {
			t.Fatalf("%v waits for ever", m.waiting)
		}
		m.want()
		m.check(t, s.Touch(chain.OS{}, o, []string{m.base}), o.Resolver.MaxFiles)
	}
	for directory, content := range m.files {
		if !m.delivered[key(directory, content)] {
			t.Fatalf("%s was never delivered", directory)
		}
	}
}

// TestEncodeStaysSmall encodes states of all sizes: they come back whole where
// they fit, and within the limit where they do not.
func TestEncodeStaysSmall(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	shrunk := 0
	for range agentsdoctest.Rounds(300) {
		s := randomState(rng)
		full, err := marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		data, err := Encode(s)
		if err != nil || len(data) > MaxBytes {
			t.Fatalf("%d bytes: %v", len(data), err)
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(full) <= MaxBytes {
			if diff := cmp.Diff(got, s); diff != "" {
				t.Fatalf("(-got +want):\n%s", diff)
			}
			continue
		}
		shrunk++
		checkShrunk(t, s, got)
		if len(data) < MaxBytes/2 && len(s.Delivered) > 0 {
			t.Errorf("%d bytes are left of %d: too much was forgotten", len(data), len(full))
		}
	}
	if shrunk == 0 || shrunk > agentsdoctest.Rounds(250) {
		t.Errorf("%d states of 300 were too long: the test sees too little", shrunk)
	}
}

// checkShrunk checks that what was forgotten was forgotten in the right order.
func checkShrunk(t *testing.T, was, is State) {
	t.Helper()
	if is.Root != was.Root || is.Dir != was.Dir || is.Epoch != was.Epoch {
		t.Error("the session is another one")
	}
	gone := func(v Version) bool { return v.Gone }
	lostVersion, lostQueue := len(is.Delivered) < len(was.Delivered), len(is.Queue) < len(was.Queue)
	switch {
	case (lostVersion || lostQueue) && len(is.Covered) > 0:
		t.Error("covered directories are left")
	case lostQueue && slices.ContainsFunc(is.Delivered, gone):
		t.Error("the queue was forgotten before versions of files that are gone")
	case len(is.Initial) < len(was.Initial) && len(is.Delivered) > 0:
		t.Error("the chain was forgotten before what was delivered")
	}
	if n := len(is.Delivered); n > 0 && is.Delivered[n-1] != was.Delivered[len(was.Delivered)-1] && !was.Delivered[len(was.Delivered)-1].Gone {
		t.Error("the version that was delivered last is forgotten, and others are not")
	}
}

// randomState is a state of any size with hostile paths.
func randomState(rng *rand.Rand) State {
	scale := 1 << rng.IntN(9)
	path := func() string {
		names := []string{"a", "long-name-of-a-directory", "日本", "q\"<\n", "\xff\xfe", strings.Repeat("n", 200), "base64:"}
		out := "/root"
		var outSb257 strings.Builder
		for range 1 + rng.IntN(5) {
			outSb257.WriteString("/" + names[rng.IntN(len(names))] + strconv.Itoa(rng.IntN(50)))
		}
		out += outSb257.String()
		return out
	}
	versions := func(n int) []Version {
		list := []Version{}
		for i := range rng.IntN(n + 1) {
			list = append(list, Version{
				Path: path() + strconv.Itoa(i), SHA256: fmt.Sprintf("%064x", rng.Uint64()), MTimeMs: rng.Int64N(1 << 41), Size: rng.Int64N(1 << 20), Gone: rng.IntN(4) == 0,
			})
			if rng.IntN(5) == 0 {
				list[i].RealPath = path()
			}
		}
		return list
	}
	paths := func(n int) []string {
		list := []string{}
		for range rng.IntN(n + 1) {
			list = append(list, path())
		}
		return list
	}
	return State{
		Schema: Schema, Epoch: rng.IntN(5), Root: "/root", Dir: path(), Markers: []string{".git"},
		Initial: versions(scale / 4), Delivered: versions(scale * 2), Covered: paths(scale), Queue: paths(scale),
	}
}
