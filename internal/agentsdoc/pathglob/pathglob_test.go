package pathglob

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGlob(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern string
		yes, no []string
	}{
		{"*.go", []string{"a.go", ".go"}, []string{"a/b.go", "a.gox", "."}},
		{"**/*.go", []string{"a.go", "a/b.go", "a/b/c.go"}, []string{"a.md", "a.go/b"}},
		{"src/**", []string{"src", "src/a", "src/a/b"}, []string{"srcs/a", "a/src/b", "."}},
		{"src/", []string{"src", "src/a"}, []string{"srcs"}},
		{"/src/*", []string{"src/a"}, []string{"src", "src/a/b"}},
		{"./src", []string{"src"}, []string{"src/a"}},
		{"{a,b}/*.{ts,tsx}", []string{"a/x.ts", "b/x.tsx"}, []string{"c/x.ts", "a/x.js"}},
		{"{a,{b,c}}", []string{"a", "b", "c"}, []string{"{b,c}"}},
		{"a{,b}", []string{"a", "ab"}, []string{"b"}},
		{`\{a,b\}`, []string{"{a,b}"}, []string{"a"}},
		{"[a-c]?.md", []string{"ax.md", "cy.md"}, []string{"dx.md", "a.md"}},
		{"a**b", []string{"ab", "axxb"}, []string{"a/b"}},
		{"}a{b}", []string{"}ab"}, []string{"a"}},
		{"é*", []string{"éa"}, []string{"e"}},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			t.Parallel()
			g, err := Parse(tt.pattern)
			if err != nil || g.String() != tt.pattern {
				t.Fatalf("%v, %q", err, g)
			}
			for _, name := range tt.yes {
				if !g.Match(name) {
					t.Errorf("does not match %q", name)
				}
			}
			for _, name := range tt.no {
				if g.Match(name) {
					t.Errorf("matches %q", name)
				}
			}
		})
	}
	if (Glob{}).Match("a") {
		t.Error("the zero value matches")
	}
}

func TestBadGlobs(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"", "[a", `a\`, "{a", "{a,{b}", "a//b", "../a", "a/./b", "a/..", "/", "//a", strings.Repeat("a", maxGlob+1),
		"{a,b}{a,b}{a,b}{a,b}{a,b}", strings.Repeat("{a,", 80), "{" + strings.Repeat(",", 100) + "}",
	} {
		if g, err := Parse(pattern); err == nil {
			t.Errorf("%.40q is accepted: %v", pattern, g.alternatives)
		}
	}
}

func TestSplitGlobs(t *testing.T) {
	t.Parallel()
	got := Split(` a/** , *.{ts,tsx},, {x,{y,z}} ,b\,c, d}`)
	want := []string{"a/**", "*.{ts,tsx}", "{x,{y,z}}", `b\,c`, "d}"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// reference is a glob as a regular expression, which is another way to say it.
func reference(pattern string) *regexp.Regexp {
	var b strings.Builder
	for e := range strings.SplitSeq(pattern, "/") {
		if e == "**" {
			b.WriteString("(/[^/]+)*")
			continue
		}
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(e, "*", "[^/]*"), "?", "[^/]"))
	}
	return regexp.MustCompile("^" + b.String() + "$")
}

func TestGlobAgainstReference(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	for range 20_000 {
		var pattern, name []string
		for range 1 + rng.IntN(5) {
			pattern = append(pattern, pick("**", "**", "a", "b", "*", "a*", "?", "*b", "a?*"))
		}
		for range 1 + rng.IntN(6) {
			name = append(name, pick("a", "b", "ab", "ba", "aab"))
		}
		p, n := strings.Join(pattern, "/"), strings.Join(name, "/")
		g, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.Match(n), reference(p).MatchString("/"+n); got != want {
			t.Fatalf("%q on %q: %v, want %v", p, n, got, want)
		}
	}
}

// TestGlobIsBounded would take hours if patterns that are made to be slow took more than the product of the lengths.
func TestGlobIsBounded(t *testing.T) {
	t.Parallel()
	g, err := Parse(strings.Repeat("**/", 60) + strings.Repeat("*a", 30) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.Match(strings.Repeat(strings.Repeat("a", 60)+"/", 60) + "c") {
		t.Error("it matches")
	}
}
