package ignore

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// The random trees that are compared with git. More of them make a search.
var (
	gitCases = flag.Int("ignore.cases", agentsdoctest.Rounds(1000), "random trees that are compared with git")
	gitSeed  = flag.Uint64("ignore.seed", 5, "seed of the random trees")
)

// gitCommand is git without what the machine or its user have configured.
type gitCommand struct{ path, base string }

// newGit makes a repository, unless there is no git.
func newGit(t *testing.T) gitCommand {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git to compare with")
	}
	g := gitCommand{path, t.TempDir()}
	g.run(t, nil, "init", "--quiet")
	return g
}

func (g gitCommand) run(t *testing.T, in []byte, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), g.path, args...)
	c.Dir, c.Stdin = g.base, bytes.NewReader(in)
	c.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + g.base, "XDG_CONFIG_HOME=" + g.base}
	out, err := c.Output()
	if err != nil && c.ProcessState.ExitCode() != 1 { // which says that none is ignored
		t.Fatal(err)
	}
	return out
}

// ignores returns which of the directories git ignores.
func (g gitCommand) ignores(t *testing.T, paths []string) map[string]bool {
	t.Helper()
	out := g.run(t, []byte(strings.Join(paths, "\x00")), "check-ignore", "--no-index", "-z", "--stdin")
	answer := map[string]bool{}
	for path := range strings.SplitSeq(string(out), "\x00") {
		answer[path] = true
	}
	return answer
}

// sample is one tree: its directories, and the files of patterns by theirs.
type sample struct {
	directories []string
	patterns    map[string]string
}

// write makes the tree below a directory.
func (s *sample) write(t *testing.T, base string) {
	t.Helper()
	for _, path := range s.directories {
		if err := os.MkdirAll(filepath.Join(base, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for at, text := range s.patterns {
		if err := os.WriteFile(filepath.Join(base, at, File), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAgainstGit compares random trees with what git says of them. Each is in a
// directory of its own, so that one call of git answers for many.
func TestAgainstGit(t *testing.T) {
	t.Parallel()
	const together = 100
	rng := rand.New(rand.NewPCG(*gitSeed, 6))
	seen := map[bool]int{}
	for done := 0; done < *gitCases; done += together {
		g := newGit(t)
		samples := make([]sample, together)
		var paths []string
		for i := range samples {
			samples[i] = randomSample(rng)
			samples[i].write(t, filepath.Join(g.base, fmt.Sprintf("tree-%d", i)))
			for _, path := range samples[i].directories {
				paths = append(paths, fmt.Sprintf("tree-%d/%s", i, path))
			}
		}
		want := g.ignores(t, paths)
		for i, s := range samples {
			for _, path := range s.directories {
				got := ignored(s.patterns, path)
				seen[got]++
				if want := want[fmt.Sprintf("tree-%d/%s", i, path)]; got != want {
					t.Errorf("%q: ignored %t, git says %t of %q", path, got, want, s.patterns)
				}
			}
		}
		if err := os.RemoveAll(g.base); err != nil {
			t.Fatal(err)
		}
	}
	if seen[true] < *gitCases || seen[false] < *gitCases {
		t.Errorf("%v: the test sees too little", seen)
	}
}

// TestClassesAgainstGit asks for each class what it says of each character.
func TestClassesAgainstGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	var names []string
	for c := 1; c < 256; c++ {
		if c != '/' {
			names = append(names, "x"+string([]byte{byte(c)}))
		}
	}
	patterns := []string{"x[!-\\]a]", "x[]-a]", "x[a-]", "x[^[:alpha:][:digit:]]", "x[[:nothing:]]", "x[[:]", "x[[:]]", "x[[:alpha]", "x[+--]", "x[\\d-\\f]", "x[z-a]", "x[[:digit:]-z]"}
	for _, class := range []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"} {
		patterns = append(patterns, "x[[:"+class+":]]")
	}
	var paths []string
	for i, pattern := range patterns {
		s := sample{directories: names, patterns: map[string]string{"": pattern + "\n"}}
		s.write(t, filepath.Join(g.base, strconv.Itoa(i)))
		for _, name := range names {
			paths = append(paths, fmt.Sprintf("%d/%s", i, name))
		}
	}
	want := g.ignores(t, paths)
	for i, pattern := range patterns {
		for _, name := range names {
			got := ignored(map[string]string{"": pattern + "\n"}, name)
			if want := want[fmt.Sprintf("%d/%s", i, name)]; got != want {
				t.Errorf("%q: ignored %t, git says %t of %s", name, got, want, pattern)
			}
		}
	}
}

// The letters of random names and patterns. Names are made of few, so that
// patterns meet them.
var (
	nameParts    = []string{"a", "b", "c", "ab", "a b", "b ", "#", "!", "\\", "]", "-"}
	patternParts = []string{
		"a", "b", "c", "ab", "*", "*", "**", "**", "***", "?", "[ab]", "[!a]", "[^ab]", "[a-c]", "[]a]", "[a", "[[:alpha:]]", "[\\]-]",
		"\\*", "\\a", "\\b", "\\ ", " ", "#", "!", "\\#", "\\!", "\\\\", "\\",
	}
)

// randomSample makes a tree of a few directories, and patterns for some of them.
func randomSample(rng *rand.Rand) sample {
	s := sample{patterns: map[string]string{}}
	common := len(nameParts)
	if rng.IntN(2) == 0 {
		common = 3
	}
	all := map[string]bool{}
	for range 6 {
		path := ""
		for range 1 + rng.IntN(4) {
			name := nameParts[rng.IntN(common)]
			if rng.IntN(4) == 0 {
				name += nameParts[rng.IntN(common)]
			}
			path = strings.TrimPrefix(path+"/"+name, "/")
			all[path] = true
		}
	}
	for path := range all {
		s.directories = append(s.directories, path)
	}
	slices.Sort(s.directories)
	for i := range s.directories {
		if at := s.directories[i]; i == 0 || rng.IntN(4) == 0 {
			if i == 0 {
				at = ""
			}
			s.patterns[at] = randomPatterns(rng, s.directories)
		}
	}
	return s
}

// randomPatterns is a file of patterns. Most are paths of the tree with parts of
// them made more general, so that they mean something there.
func randomPatterns(rng *rand.Rand, paths []string) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	var out strings.Builder
	if rng.IntN(20) == 0 {
		out.WriteString("\uFEFF")
	}
	for range rng.IntN(6) {
		out.WriteString(pick("", "", "", "!", "!", "#", " ", "\\"))
		out.WriteString(pick("", "", "", "/", "**/"))
		if rng.IntN(4) == 0 {
			for range 1 + rng.IntN(4) {
				out.WriteString(pick(append(patternParts, "/")...))
			}
		} else {
			names := strings.Split(pick(paths...), "/")
			names = names[rng.IntN(len(names)):]
			for i, name := range names[:1+rng.IntN(len(names))] {
				if i > 0 {
					out.WriteString(pick("/", "/", "/", "/**/", "/*/", "//", "\\/"))
				}
				if rng.IntN(2) == 0 {
					n := rng.IntN(len(name))
					name = name[:n] + pick(patternParts...) + name[n+rng.IntN(2):]
				}
				out.WriteString(name)
			}
		}
		out.WriteString(pick("", "", "", "/", "/", "/*", "/**", "//"))
		out.WriteString(pick("", "", "", "", "", " ", "  ", "\\ ", "\\  ", "\t"))
		out.WriteString(pick("\n", "\n", "\n", "\n", "\r\n", "\n\n", "\r\r\n", "\x00x\n", ""))
	}
	return out.String()
}
