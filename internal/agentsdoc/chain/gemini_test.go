package chain

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// gemini is what Gemini CLI does (memoryDiscovery.ts and memoryImportProcessor.ts,
// google-gemini/gemini-cli 5411f113), written apart from the code that it checks.
type gemini struct{ root string }

func (g gemini) expand(text, dir string, above []string) string {
	if len(above) >= 5 {
		return text
	}
	code := lazyCode(text)
	var out strings.Builder
	last := 0
	for _, at := range regexp.MustCompile(`@[^ \t\r\n]*`).FindAllStringIndex(text, -1) {
		word := text[at[0]+1 : at[1]]
		if at[0] > 0 && !strings.ContainsAny(text[at[0]-1:at[0]], " \t\r\n") || !regexp.MustCompile(`^[./a-zA-Z]`).MatchString(word) {
			continue
		}
		out.WriteString(text[last:at[0]])
		last = at[1]
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		real, missing := filepath.EvalSymlinks(path)
		data, err := os.ReadFile(real)
		switch {
		case slices.ContainsFunc(code, func(r [2]int) bool { return at[0] >= r[0] && at[0] < r[1] }):
			out.WriteString("@" + word)
		case !Within(g.root, path) || missing == nil && !Within(g.root, real):
			out.WriteString("<!-- Import failed: " + word + " - Path traversal attempt -->")
		case slices.Contains(above, path):
			out.WriteString("<!-- File already processed: " + word + " -->")
		case missing != nil:
			out.WriteString("<!-- Import failed: " + word + " - ENOENT: no such file or directory, access '" + path + "' -->")
		case err != nil:
			out.WriteString("<!-- Import failed: " + word + " - the link leads to a directory -->") // ours
		default:
			inner := g.expand(string(data), filepath.Dir(path), append(slices.Clone(above), path))
			out.WriteString("<!-- Imported from: " + word + " -->\n" + inner + "\n<!-- End of import from: " + word + " -->")
		}
	}
	return out.String() + text[last:]
}

// lazyCode is the regular expression (`+)([\s\S]*?)\1, tried at each place.
func lazyCode(text string) (regions [][2]int) {
	for i := 0; i < len(text); i++ {
		marks := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		for n := marks; n > 0; n-- {
			if end := strings.Index(text[i+n:], text[i:i+n]); end >= 0 {
				regions = append(regions, [2]int{i, i + n + end + n})
				i += n + end + n - 1
				break
			}
		}
	}
	return regions
}

func TestContextAsGeminiDoes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(141, 142))
	imported, failed := 0, 0
	for range agentsdoctest.Rounds(1500) {
		base, directories := randomProject(t, rng, 7, "GEMINI.md", "GEMINI.md", "docs/a.md", "docs/b.md", "docs/ü.md", "c.md", "AGENTS.md")
		user := build(t, files{"GEMINI.md": "I am @docs/a.md", "docs/a.md": "Ada"})
		o := preset(t, PresetGemini)
		o.GlobalDir = user
		c := Resolve(OS{}, directories[len(directories)-1], o)
		r := Render(c, Budget{plenty, plenty})
		var want []string
		for i, dir := range append([]string{user}, directories...) {
			path := filepath.Join(dir, "GEMINI.md")
			real, err := filepath.EvalSymlinks(path)
			data, readErr := os.ReadFile(path)
			if err != nil || readErr != nil {
				continue
			}
			g := gemini{base}
			if i == 0 {
				g.root = user
			}
			if text := strings.TrimSpace(g.expand(string(data), filepath.Dir(real), nil)); text != "" {
				want = append(want, "--- Context from: "+path+" ---\n"+text+"\n--- End of Context from: "+path+" ---")
			}
		}
		if diff := cmp.Diff(r.Text, strings.Join(want, "\n\n")); diff != "" {
			t.Fatalf("(-got +want)\n%s\n%s", diff, outline(c, base))
		}
		imported += strings.Count(r.Text, "<!-- Imported from")
		failed += strings.Count(r.Text, "<!-- Import failed")
	}
	if imported < agentsdoctest.Rounds(500) || failed < agentsdoctest.Rounds(500) {
		t.Errorf("%d imports, %d that failed: the test sees too little", imported, failed)
	}
}

func FuzzCodeRegions(f *testing.F) {
	f.Add("`` ` ``` x ` `````")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		if diff := cmp.Diff(codeRegions(text), lazyCode(text)); diff != "" {
			t.Errorf("%q: (-got +want)\n%s", text, diff)
		}
	})
}
