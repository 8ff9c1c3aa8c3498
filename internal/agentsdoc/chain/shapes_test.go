package chain

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The trees here have the shapes of large repositories: how many files there
// are, how deep, how long. Their texts are filler.

// hostChars is what a host usually tells the section, less its frame.
var hostChars = 16_000 - len([]rune(FrameOpen+"\n"+FrameClose))

func TestManyFilesAtSixLevels(t *testing.T) {
	t.Parallel()
	// 43 files, 6 levels deep, of which one has 37,770 bytes.
	tree := files{".git/": "", "AGENTS.md": filler(8000)}
	levels := []string{"a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e"}
	for i := range 41 {
		dir := filepath.Join(levels[i%len(levels)], fmt.Sprintf("pkg%02d", i))
		tree[dir+"/AGENTS.md"] = fmt.Sprintf("Package %d.\n", i) + filler(400+i*97)
	}
	const long = "a/b/c/d/e"
	tree[long+"/AGENTS.md"] = filler(37_770)
	base := build(t, tree)

	c := Resolve(OS{}, filepath.Join(base, long), Options{})
	if len(c.Sources) != 2 {
		t.Fatalf("files beside the way are in the chain: %s", outline(c, base))
	}
	r := Render(c, Budget{defaultTotalBytes, hostChars})
	near, far := r.Sources[1], r.Sources[0]
	if near.State != StateTruncated || near.Kept < 13_000 || far.State != StateTruncated || far.Kept < 900 {
		t.Errorf("nearest %s %d of %d, root %s %d of %d", near.State, near.Kept, near.Bytes, far.State, far.Kept, far.Bytes)
	}
	for _, dir := range []string{"a/pkg00", "a/b/c/pkg02", long + "/pkg39"} {
		c := Resolve(OS{}, filepath.Join(base, dir), Options{})
		r := Render(c, Budget{defaultTotalBytes, hostChars})
		checkRendering(t, c, Budget{defaultTotalBytes, hostChars}, r)
		if last := r.Sources[len(r.Sources)-1]; last.State != StateKept {
			t.Errorf("%s: the nearest is %s, %d of %d", dir, last.State, last.Kept, last.Bytes)
		}
	}
}

func TestOneLongRootFile(t *testing.T) {
	t.Parallel()
	const size = 126_123
	base := build(t, files{".git/": "", "AGENTS.md": filler(size), "a/": ""})
	dir := filepath.Join(base, "a")

	r := Render(Resolve(OS{}, dir, Options{}), Budget{defaultTotalBytes, plenty})
	if s := r.Sources[0]; s.State != StateTruncated || s.Bytes != size || s.Kept < 32_000 || s.Kept > defaultFileBytes {
		t.Errorf("default: %s, kept %d", s.State, s.Kept)
	}
	if !strings.HasSuffix(r.Text, fmt.Sprintf("[truncated: AGENTS.md, kept %d of %d bytes]\n", r.Sources[0].Kept, size)) {
		t.Errorf("default: it ends in %q", r.Text[len(r.Text)-80:])
	}
	r = Render(Resolve(OS{}, dir, preset(t, PresetCodex)), Budget{codexBytes, plenty})
	if r.Text != filler(size)[:codexBytes] || r.Sources[0].Kept != codexBytes {
		t.Errorf("codex: %d bytes, kept %d: want the first %d, and nothing else", len(r.Text), r.Sources[0].Kept, codexBytes)
	}
	r = Render(Resolve(OS{}, dir, preset(t, PresetCodelia)), Budget{codeliaBytes, plenty})
	if s := r.Sources[0]; s.State != StateKept || len(r.Text) < size-1 {
		t.Errorf("codelia: %s, %d bytes", s.State, len(r.Text))
	}
}

func TestTenTwinsByLinks(t *testing.T) {
	t.Parallel()
	tree := files{".git/": "", "AGENTS.md": "The same rules everywhere.\n"}
	dir := ""
	for i := range 10 {
		dir = filepath.Join(dir, fmt.Sprintf("d%d", i))
		tree[dir+"/AGENTS.md"] = "-> " + strings.Repeat("../", i+1) + "AGENTS.md"
	}
	base := build(t, tree)
	for name, view := range views() {
		c := Resolve(view, filepath.Join(base, dir), Options{})
		kept := 0
		for i, s := range c.Sources {
			if s.State == StateKept {
				kept++
			} else if s.DuplicateOf != c.Sources[10].Path || s.RealPath != c.Sources[10].RealPath {
				t.Errorf("%s: number %d is %+v", name, i, s)
			}
		}
		if len(c.Sources) != 11 || kept != 1 || c.Sources[10].State != StateKept {
			t.Errorf("%s: %d of %d are kept", name, kept, len(c.Sources))
		}
	}
	for _, name := range []Preset{PresetCodex, PresetCodelia} {
		r := Render(Resolve(OS{}, filepath.Join(base, dir), preset(t, name)), Budget{plenty, plenty})
		if n := strings.Count(r.Text, "The same rules everywhere."); n != 11 {
			t.Errorf("%s: %d times, want it as often as the tool says it", name, n)
		}
	}
}

func TestChainsOfAnyLength(t *testing.T) {
	if testing.Short() {
		t.Skip("volume without concurrency: it runs without -short")
	}
	t.Parallel()
	dir := build(t, files{".git/": ""})
	for n := 1; n <= 64; n++ {
		dir = filepath.Join(dir, fmt.Sprintf("d%02d", n))
		addFile(t, filepath.Join(dir, "AGENTS.md"), fmt.Sprintf("file %d\n", n)+filler(700+n*40))
		c := Resolve(OS{}, dir, Options{})
		b := Budget{defaultTotalBytes, hostChars}
		r := Render(c, b)
		checkRendering(t, c, b, r)
		if last := r.Sources[n-1]; last.Kept < 1000 && last.State != StateKept {
			t.Errorf("of %d files the nearest is %s, %d of %d", n, last.State, last.Kept, last.Bytes)
		}
		if !strings.Contains(r.Text, fmt.Sprintf("\nfile %d\n", n)) {
			t.Errorf("of %d files the nearest has lost its beginning", n)
		}
		if n > defaultFiles && r.Sources[0].Reason != string(CodeOmittedCount) {
			t.Errorf("of %d files the farthest is %s", n, r.Sources[0].Reason)
		}
	}
}
