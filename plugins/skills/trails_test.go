package skills

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/phases"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"a-go": "**/*.go|A.", "b-docs": "docs/**|B.", "c-api": "api/**|C."})
	tests := []struct {
		name  string
		dir   string
		touch []string
		want  []string
	}{
		{"nothing", "", nil, []string{"list"}},
		{"no match", "", []string{"README.md"}, []string{"list"}},
		{"relative path", "", []string{"x/y.go"}, []string{"list", "body/a-go"}},
		{"absolute path", "", []string{"$DIR/docs/x.md"}, []string{"list", "body/b-docs"}},
		{"path with dots", "", []string{"x/../docs/./x.md"}, []string{"list", "body/b-docs"}},
		{"outside", "", []string{"../docs/x.md", "/docs/x.go"}, []string{"list"}},
		{"relative to the working directory", "docs", []string{"../api/x"}, []string{"list", "body/b-docs", "body/c-api"}},
		{"in the order of touching", "", []string{"docs/x.md", "x.go"}, []string{"list", "body/b-docs", "body/a-go"}},
		{"both at once", "", []string{"api/x.go"}, []string{"list", "body/a-go", "body/c-api"}},
		{"the working directory comes first", "docs", []string{"x.go"}, []string{"list", "body/b-docs", "body/a-go"}},
		{"a NUL", "", []string{"docs/\x00"}, []string{"list"}},
		{"a long path", "", []string{"docs/" + strings.Repeat("x", maxPathBytes)}, []string{"list"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, where := configured(t, ""), inDir(filepath.Join(dir, tt.dir))
			if tt.dir != "" {
				where.Dir = filepath.Join(dir, tt.dir)
				write(t, filepath.Join(where.Dir, "keep"), "")
			}
			for i := range tt.touch {
				touch(t, p, where, strings.ReplaceAll(tt.touch[i], "$DIR", dir))
			}
			if diff := cmp.Diff(ids(sections(t, p, where, 0)), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

// TestPrefixStays: what a session touches later changes the end of the section
// only, so that what a provider has cached in front of it stays good.
func TestPrefixStays(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"a": "a/**|A.", "m": "m/**|M.", "z": "z/**|Z."})
	p, where := configured(t, ""), inDir(dir)
	var before []*phases.PromptSection
	for _, path := range []string{"other", "z/1", "z/2", "a/1", "m/1", "z/3"} {
		touch(t, p, where, path)
		now := sections(t, p, where, 0)
		if len(now) < len(before) {
			t.Fatalf("%s: %q after %q", path, ids(now), ids(before))
		}
		if diff := cmp.Diff(now[:len(before)], before, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s changes what stood before (-now +before)\n%s", path, diff)
		}
		if diff := cmp.Diff(sections(t, p, where, 0), now); diff != "" {
			t.Errorf("%s: the next turn is another (-got +want)\n%s", path, diff)
		}
		before = now
	}
	if diff := cmp.Diff(ids(before), []string{"list", "body/z", "body/a", "body/m"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	// An edit of another skill looks at all paths again, and finds the same order.
	write(t, filepath.Join(dir, ".agents/skills/new/SKILL.md"), skill("new", "", ""))
	if diff := cmp.Diff(ids(sections(t, p, where, 0)), ids(before)); diff != "" {
		t.Errorf("after an edit (-got +want)\n%s", diff)
	}
}

// TestGlobsChange: an edit of a skill counts for what was touched before it.
func TestGlobsChange(t *testing.T) {
	t.Parallel()
	dir := three(t)
	p, where := configured(t, ""), inDir(dir)
	touch(t, p, where, "x.go", "y.md")
	for i, tt := range []struct {
		paths string
		want  []string
	}{{"**/*.go", []string{"list", "body/go-style"}}, {"**/*.js", []string{"list"}}, {"**/*.md", []string{"list", "body/go-style"}}} {
		// A longer text each time: the clock of the file system may stand still.
		write(t, filepath.Join(dir, ".agents/skills/go-style/SKILL.md"), skill("go-style", tt.paths, strings.Repeat("x", 20*(i+1))))
		if diff := cmp.Diff(ids(sections(t, p, where, 0)), tt.want); diff != "" {
			t.Errorf("paths %s (-got +want)\n%s", tt.paths, diff)
		}
	}
}

// TestWhoRemembers: each thread, session and epoch has a memory of its own, and a
// context that names none has no memory.
func TestWhoRemembers(t *testing.T) {
	t.Parallel()
	dir := three(t)
	base := inDir(dir)
	tests := []struct {
		name   string
		change func(c *phases.Context)
		want   bool
	}{
		{"the same", func(*phases.Context) {}, true},
		{"another turn", func(c *phases.Context) { c.TurnID = "2" }, true},
		{"another thread", func(c *phases.Context) { c.ThreadID = "other" }, false},
		{"another session", func(c *phases.Context) { c.SessionID = "other" }, false},
		{"another workspace", func(c *phases.Context) { c.WorkspaceID = "other" }, false},
		{"another epoch", func(c *phases.Context) { c.Epoch = 1 }, false},
		{"without ids", func(c *phases.Context) { c.ThreadID, c.SessionID = "", "" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, where := configured(t, ""), base
			touch(t, p, base, "x.go")
			touch(t, p, phases.Context{Dir: dir}, "x.go")
			tt.change(&where)
			if got := len(sections(t, p, where, 0)) == 2; got != tt.want {
				t.Errorf("remembered: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestListenersDependOnConfiguration(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]int{"": 4, `{"max_active_bodies":0}`: 2} {
		d, err := configured(t, config).Describe(t.Context())
		if err != nil || len(d.Hooks) != want {
			t.Errorf("%s: %d hooks, %v, want %d", config, len(d.Hooks), err, want)
		}
	}
}

func TestTrailBounds(t *testing.T) {
	t.Parallel()
	var list trails
	where := phases.Context{ThreadID: "t", Dir: "/d"}
	for i := range maxPaths + 10 {
		list.add(&where, []string{fmt.Sprintf("f%04d", i)})
	}
	key, _ := keyOf(&where)
	trail := list.get(key)
	if len(trail.paths) != maxPaths || trail.paths[0] != filepath.Join("/d", "f0010") || trail.fresh != maxPaths {
		t.Errorf("%d paths from %q, %d fresh", len(trail.paths), trail.paths[0], trail.fresh)
	}
	for i := range maxPaths {
		list.add(&where, []string{fmt.Sprintf("%04d%s", i, strings.Repeat("x", 900))})
	}
	sum := 0
	for _, path := range trail.paths {
		sum += len(path)
	}
	if sum != trail.bytes || sum > maxTrailBytes || len(trail.paths) == 0 {
		t.Errorf("%d bytes, counted %d, of %d paths", sum, trail.bytes, len(trail.paths))
	}
	for i := range maxTrails + 5 {
		list.add(&phases.Context{ThreadID: strconv.Itoa(i), Dir: "/d"}, []string{"f"})
	}
	if len(list.recent) != maxTrails {
		t.Errorf("%d threads, want %d", len(list.recent), maxTrails)
	}
	if list.get(key) != nil {
		t.Error("the oldest thread is still there")
	}
}

// TestHammer uses one plugin from many sides at once.
func TestHammer(t *testing.T) {
	t.Parallel()
	dir := three(t)
	p := configured(t, "")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			where := inDir(dir)
			where.ThreadID = strconv.Itoa(i % 3)
			for j := range 50 {
				touch(t, p, where, fmt.Sprintf("x%d.go", j))
				if got := sections(t, p, where, 0); len(got) != 2 {
					t.Errorf("fragments %q", ids(got))
				}
				if text, _ := readSkill(t, p, where, `{"slug":"any"}`); !strings.Contains(text, "Do things.") {
					t.Errorf("got %q", text)
				}
				if i == 0 && j%10 == 0 {
					write(t, filepath.Join(dir, fmt.Sprintf(".agents/skills/new-%d/SKILL.md", j)), skill(fmt.Sprintf("new-%d", j), "", ""))
				}
			}
		})
	}
	wg.Wait()
}
