package ignore

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ignored walks to a folder the way that a caller does: never into one that is
// ignored. Files of patterns are by the folder that they lie in.
func ignored(patterns map[string]string, path string) bool {
	var w Way
	w.Add(patterns[""])
	at := ""
	for name := range strings.SplitSeq(path, "/") {
		w.Enter(name)
		if w.Ignored() {
			return true
		}
		at = strings.TrimPrefix(at+"/"+name, "/")
		if text, ok := patterns[at]; ok {
			w.Add(text)
		}
	}
	return false
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		patterns map[string]string
		yes, no  []string
	}{
		{"names at any depth", map[string]string{"": "out\n"}, []string{"out", "a/out", "a/out/b"}, []string{"outer", "a/b"}},
		{"for folders", map[string]string{"": "out/\n"}, []string{"out", "a/out"}, nil},
		{"from the top", map[string]string{"": "/out\na/b\n"}, []string{"out", "a/b"}, []string{"x/out", "x/a/b", "b"}},
		{"any beginning", map[string]string{"": "**/out\n**/a/b\n"}, []string{"out", "x/out", "a/b", "x/y/a/b", "a/a/b"}, []string{"a", "b", "a/x/b"}},
		{"any middle", map[string]string{"": "a/**/b\n"}, []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"x/a/b", "a/x"}},
		{"all below", map[string]string{"": "a/**\n"}, []string{"a/b", "a/b/c"}, []string{"a", "x/a/b"}},
		{"stars and marks", map[string]string{"": "*.o\nx?\n[ab]c\n"}, []string{"y.o", "xy", "d/ac"}, []string{"o", "x", "xyz", "cc"}},
		{"a star alone", map[string]string{"": "*\n!keep\n"}, []string{"a", "x/keep"}, []string{"keep"}},
		{"taken back", map[string]string{"": "*.d\n!x.d\n"}, []string{"y.d", "y.d/x.d"}, []string{"x.d", "a/x.d"}},
		{"taken back too early", map[string]string{"": "!x.d\n*.d\n"}, []string{"x.d"}, nil},
		{"nearer files win", map[string]string{"": "out\n", "a": "!out\ntmp\n"}, []string{"out", "a/tmp", "b/out"}, []string{"a/out", "tmp"}},
		{"files speak of what is below", map[string]string{"a": "a\n/b\n"}, []string{"a/a", "a/b"}, []string{"a", "b", "a/c/b"}},
		{"comments, blanks and line ends", map[string]string{"": "\uFEFFone\r\n# two\n\n  \nthree  \n\\#four\n"}, []string{"one", "three", "#four"}, []string{"two", "# two"}},
		{"no patterns at all", map[string]string{"": "/\n!\n[\n"}, nil, []string{"a", "["}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range tt.yes {
				if !ignored(tt.patterns, path) {
					t.Errorf("%s is not ignored", path)
				}
			}
			for _, path := range tt.no {
				if ignored(tt.patterns, path) {
					t.Errorf("%s is ignored", path)
				}
			}
		})
	}
}

func TestWay(t *testing.T) {
	t.Parallel()
	var w Way
	w.Add("out\n")
	w.Enter("a")
	w.Add("tmp\n")
	w.Enter("tmp")
	if !w.Ignored() {
		t.Error("a/tmp is not ignored")
	}
	w.Leave()
	w.Leave()
	w.Enter("tmp")
	if w.Ignored() {
		t.Error("tmp is ignored by patterns of a folder that was left")
	}
	w.Reset()
	w.Enter("out")
	if w.Ignored() {
		t.Error("out is ignored in a tree of its own")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a long file":     strings.Repeat("# filler\n", MaxBytes/9+1) + "out\n",
		"many patterns":   strings.Repeat("x\n", maxPatterns) + "out\n",
		"a long pattern":  strings.Repeat("**/", maxPattern/3) + "out\n",
		"a pattern of **": strings.Repeat("**/a/", maxStars+1) + "out/**\n",
	} {
		if ignored(map[string]string{"": text}, "out") {
			t.Errorf("%s counts to its end", name)
		}
	}
}

// TestAgainstGit compares random patterns with what git says of them.
func TestAgainstGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	words := []string{"a", "b", "*", "a*", "?", "[ab]", "**", "ab"}
	seen := map[bool]int{}
	for range 25 {
		base := t.TempDir()
		paths := folders(t, base)
		patterns := map[string]string{}
		for _, at := range []string{"", "a", "b/a"} {
			patterns[at] = randomPatterns(rng, words)
			if err := os.WriteFile(filepath.Join(base, at, File), []byte(patterns[at]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := askGit(t, git, base, paths)
		for _, path := range paths {
			got := ignored(patterns, path)
			seen[got]++
			if got != want[path] {
				t.Errorf("%s: ignored %t, git says %t of %q", path, got, want[path], patterns)
			}
		}
	}
	if seen[true] < 100 || seen[false] < 100 {
		t.Errorf("%v: the test sees too little", seen)
	}
}

// folders makes folders and returns their paths.
func folders(t *testing.T, base string) []string {
	t.Helper()
	paths := []string{"a", "b", "ab"}
	for range 2 {
		for _, path := range slices.Clone(paths) {
			for _, name := range []string{"a", "b", "ab"} {
				paths = append(paths, path+"/"+name)
			}
		}
		slices.Sort(paths)
		paths = slices.Compact(paths)
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Join(base, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// randomPatterns is a file of patterns.
func randomPatterns(rng *rand.Rand, words []string) string {
	var out strings.Builder
	for range rng.IntN(4) {
		if rng.IntN(4) == 0 {
			out.WriteByte('!')
		}
		if rng.IntN(4) == 0 {
			out.WriteByte('/')
		}
		elems := []string{}
		for range 1 + rng.IntN(3) {
			elems = append(elems, words[rng.IntN(len(words))])
		}
		out.WriteString(strings.Join(elems, "/"))
		if rng.IntN(3) == 0 {
			out.WriteByte('/')
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// askGit returns which of the folders git ignores.
func askGit(t *testing.T, git, base string, paths []string) map[string]bool {
	t.Helper()
	run := func(in string, args ...string) string {
		c := exec.CommandContext(t.Context(), git, args...)
		c.Dir, c.Stdin = base, strings.NewReader(in)
		c.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + base}
		out, err := c.Output()
		if err != nil && c.ProcessState.ExitCode() != 1 {
			t.Fatal(err)
		}
		return string(out)
	}
	run("", "init", "--quiet")
	answer := map[string]bool{}
	for line := range strings.Lines(run(strings.Join(paths, "\n"), "check-ignore", "--stdin")) {
		answer[strings.TrimSuffix(line, "\n")] = true
	}
	return answer
}

// FuzzWay checks that no text of patterns does harm, or changes between two
// walks.
func FuzzWay(f *testing.F) {
	f.Add("out\n!/a/**/b\n", "a/x/b")
	f.Add("[\n\\\n**/**\n", "a")
	f.Fuzz(func(t *testing.T, text, path string) {
		patterns := map[string]string{"": text, "a": text}
		if got := ignored(patterns, path); got != ignored(patterns, path) {
			t.Error("two walks differ")
		}
		if text == "" && ignored(patterns, path) {
			t.Error("ignored by nothing")
		}
	})
}

func BenchmarkWay(b *testing.B) {
	text := strings.Repeat("# build\n*.o\n/dist\nout/**/cache\nbin/\n*.log\n", 20)
	b.ReportAllocs()
	for b.Loop() {
		if ignored(map[string]string{"": text}, "a/b/c/d/e/f") {
			b.Fatal("ignored")
		}
	}
}
