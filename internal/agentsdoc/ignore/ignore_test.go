package ignore

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// ignored walks to a directory the way that a caller does: never into one that is
// ignored. Files of patterns are by the directory that they lie in.
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
		{"for directories", map[string]string{"": "out/\n"}, []string{"out", "a/out"}, nil},
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
		t.Error("tmp is ignored by patterns of a directory that was left")
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
		"a long file":          strings.Repeat("# filler\n", MaxBytes/9+1) + "out\n",
		"a line that is cut":   strings.Repeat("#\n", MaxBytes/2-2) + "\nout/of/reach\n",
		"a file that is cut":   strings.Repeat("#\n", MaxBytes/2-2) + "\nout",
		"many patterns":        strings.Repeat("x\n", maxPatterns) + "out\n",
		"a long pattern":       strings.Repeat("[o]", maxPattern/3+1) + "\n" + strings.Repeat("*", maxPattern+1) + "\n",
		"nothing but a prefix": "out" + strings.Repeat("\\", maxPattern) + "\n",
	} {
		if ignored(map[string]string{"": text}, "out") {
			t.Errorf("%s counts to its end", name)
		}
	}
}

// TestBoundedWork gives patterns that try for ages where each star tries for
// itself. Without the bound this test would not end.
func TestBoundedWork(t *testing.T) {
	t.Parallel()
	deep := strings.TrimSuffix(strings.Repeat("a/", 500), "/")
	for _, pattern := range []string{
		strings.Repeat("**/", 300) + "x/b", strings.Repeat("**/a/", 200) + "b", strings.Repeat("/**/a", 200) + "/**/b",
		"/" + strings.Repeat("*/", 300) + "b", strings.Repeat("a**/", 300) + "b", strings.Repeat("**[a]/", 200) + "b",
	} {
		if ignored(map[string]string{"": pattern}, deep) {
			t.Errorf("%.20s: ignored", pattern)
		}
	}
	if ignored(map[string]string{"": strings.Repeat("*a", 500) + "b"}, strings.Repeat("a", 4000)) {
		t.Error("a name of many a is ignored")
	}
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

// plain is a glob as git's manual describes it, without any way of giving up.
// What a set holds is asked of the code itself, which other tests compare with
// git.
func plain(p string, at int, text string, path bool) bool {
	if at == len(p) {
		return text == ""
	}
	if p[at] == '*' {
		end := at
		for end < len(p) && p[end] == '*' {
			end++
		}
		all := !path || end-at > 1 && (at == 0 || p[at-1] == '/') && (end == len(p) || p[end] == '/' || strings.HasPrefix(p[end:], `\/`))
		if path && all && end < len(p) && p[end] == '/' && plain(p, end+1, text, path) {
			return true
		}
		for n := 0; n <= len(text); n++ {
			if plain(p, end, text[n:], path) {
				return true
			}
			if n < len(text) && text[n] == '/' && !all {
				return false
			}
		}
		return false
	}
	if text == "" {
		return false
	}
	switch p[at] {
	case '?':
		return (!path || text[0] != '/') && plain(p, at+1, text[1:], path)
	case '[':
		next, is := set(p, at, text[0])
		return next > 0 && is && (!path || text[0] != '/') && plain(p, next, text[1:], path)
	case '\\':
		return at+1 < len(p) && p[at+1] == text[0] && plain(p, at+2, text[1:], path)
	default:
		return p[at] == text[0] && plain(p, at+1, text[1:], path)
	}
}

// TestGlob checks that giving up early never changes an answer.
func TestGlob(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	of := func(parts string, n int) string {
		var out strings.Builder
		for range n {
			out.WriteByte(parts[rng.IntN(len(parts))])
		}
		return out.String()
	}
	found := 0
	for range 100_000 {
		pattern, text, path := of("aab/***?[]\\", 1+rng.IntN(9)), of("aab/", rng.IntN(9)), rng.IntN(3) > 0
		g := newGlob(pattern, path)
		got, want := g.matches([]byte(text)), plain(pattern, 0, text, path)
		if got != want {
			t.Errorf("%q of %q, a path %t: %t, want %t", pattern, text, path, got, want)
		}
		if got {
			found++
		}
	}
	if found < 2000 {
		t.Errorf("only %d matched", found)
	}
}
