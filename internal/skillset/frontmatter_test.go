package skillset

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestParseSkill reads each case of testdata/frontmatter.txt: what is wrong with front matter is said with the line, the cause and
// what to do.
func TestParseSkill(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/frontmatter.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(data), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(text, "\n")
		in, want, _ := strings.Cut(rest, "\n> ")
		if plain, err := strconv.Unquote(in); err == nil {
			in = plain
		} else {
			in += "\n"
		}
		if diff := cmp.Diff(strings.TrimSpace(read(in)), "> "+strings.TrimSpace(want)); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	long := strings.Repeat("é", maxDescription)
	for in, want := range map[string]string{long: long, long + "x": long[:len(long)-2] + "…", "b\n# " + strings.Repeat("x", maxHeader): ""} {
		if h, _, p := parseSkill("---\nname: a\ndescription: "+in+"\n---", "a"); h.description != want || (p != nil) != (want == "") || len(h.notes) > 0 != (in == long+"x") {
			t.Errorf("%.20q: %q, %+v", in, h.description, p)
		}
	}
	for _, value := range []string{"true", "True", "TRUE", "'true'"} {
		if h, _, _ := parseSkill("---\nname: a\ndescription: b\ndisable-model-invocation: "+value+"\n---\n", "a"); !h.notForModels {
			t.Errorf("%s lets models have the skill", value)
		}
	}
}

// read prints what is read in a text.
func read(text string) string {
	h, body, p := parseSkill(text, "a")
	var out strings.Builder
	if p == nil {
		fmt.Fprintf(&out, "> %q, %q\n", h.description, body)
	} else {
		h.notes = []*FileError{p}
	}
	if h.notForModels {
		out.WriteString("> not for models\n")
	}
	for _, p := range h.notes {
		fmt.Fprintf(&out, "> %d: %s: %s\n", p.line, p.Code, p.Detail)
	}
	return out.String()
}

// TestBombs: texts that are small and would cost much are refused or read in next
// to no time.
func TestBombs(t *testing.T) {
	t.Parallel()
	var aliases, keys, indents strings.Builder
	aliases.WriteString("a: &a [x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'i'; c++ {
		aliases.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "x]\n")
	}
	for i := range 1500 {
		keys.WriteString(strings.Repeat("k", i%40) + string(rune('a'+i%26)) + ":\n")
	}
	for i := range 120 {
		indents.WriteString(strings.Repeat(" ", i) + "k:\n")
	}
	room := maxHeader - 100
	bombs := map[string]string{
		"aliases":        aliases.String(),
		"keys":           keys.String(),
		"indents":        indents.String(),
		"brackets":       "k: " + strings.Repeat("[", room),
		"braces of keys": "k: " + strings.Repeat("{a: ", room/4),
		"blank lines":    "k: |\n" + strings.Repeat("\n", room) + " x",
		"blanks":         "k: >\n" + strings.Repeat(" \n", room/2) + " x",
		"quote":          "k: \"" + strings.Repeat("\n\n", room/2),
		"escapes":        "k: \"" + strings.Repeat(`\u0041`, room/6) + "\"",
	}
	for name, yaml := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, _ = parseSkill("---\n"+yaml+"\nname: a\ndescription: b\n---\n", "a") // what is not linear takes hours
		})
	}
	if h, _, p := parseSkill("---\n"+aliases.String()+"name: a\ndescription: b\n---\n", "a"); p != nil || len(h.notes) != 9 {
		t.Errorf("the alias bomb is not nine texts: %+v, %+v", h, p)
	}
}

// TestYAMLBounds: one step below each bound is accepted.
func TestYAMLBounds(t *testing.T) {
	t.Parallel()
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: x\n", i)
		}
		return b.String()
	}
	brackets := func(n int) string { return "k: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n" }
	blank := func(n int) string { return "k: |\n" + strings.Repeat("\n", n) + " x\n" }
	for name, tt := range map[string]struct {
		yaml   string
		detail string
	}{
		"keys":              {keys(maxKeys - 2), ""},
		"too many keys":     {keys(maxKeys - 1), "more than 256 keys"},
		"brackets":          {brackets(maxFlow), ""},
		"too many brackets": {brackets(maxFlow + 1), "brackets deeper than 16"},
		"blank":             {blank(maxBlank), ""},
		"too blank":         {blank(maxBlank + 1), "more than 256 blank lines"},
	} {
		_, _, p := parseSkill("---\n"+tt.yaml+"name: a\ndescription: b\n---\n", "a")
		if p == nil {
			p = &FileError{}
		}
		if !strings.HasSuffix(p.Detail, tt.detail) || (tt.detail == "") != (p.Code == "") {
			t.Errorf("%s: %+v, want %q", name, p, tt.detail)
		}
	}
}

// FuzzParseSkill asserts of any text: no panic, and what is accepted keeps the
// rules, hides nothing, and reads the same when it is written again.
func FuzzParseSkill(f *testing.F) {
	f.Add("---\nname: a\ndescription: b\n---\nBody")
	f.Add("---\nname: a\ndescription: >\n  x\n\n  y\npaths: [a/**, '*.{x,y}']\nmetadata: {paths: z}\n---\n\u202e")
	f.Add("---\nname: &a a\ndescription: *a\n---")
	f.Add("---\n\"name\": 'a'\ndescription: \"\\u202e\\0\"\ndisable-model-invocation: true\n---")
	f.Add("---\nname: a\n? x\n: y\ndescription: |2-\n   b\n---")
	f.Fuzz(func(t *testing.T, text string) {
		h, body, p := parseSkill(text, "a")
		if p != nil {
			if p.Code == "" || p.Detail == "" || !utf8.ValidString(p.Detail) {
				t.Fatalf("a problem without words: %+v", p)
			}
			return
		}
		if !validSlug(h.slug) || h.description == "" || utf8.RuneCountInString(h.description) > maxDescription {
			t.Fatalf("name %q, description %q", h.slug, h.description)
		}
		if strings.ContainsAny(h.description, "\n\r\t\x00") || strings.ContainsFunc(h.description, hides) || !utf8.ValidString(h.description) {
			t.Fatalf("the description hides something: %q", h.description)
		}
		if len(h.globs)+len(h.badGlobs) > maxHeader || len(h.globs) > maxGlobs {
			t.Fatalf("%d globs", len(h.globs))
		}
		clean, _ := reveal(body)
		again, hidden := reveal(clean)
		if again != clean || hidden != 0 || !utf8.ValidString(clean) {
			t.Fatalf("reveal is not idempotent: %q, %q", clean, again)
		}
		quoted := strings.NewReplacer("'", "''").Replace(h.description)
		h2, _, p := parseSkill("---\nname: '"+h.slug+"'\ndescription: '"+quoted+"'\n---\n", "a")
		if p != nil || h2.description != h.description || h2.slug != h.slug {
			t.Fatalf("written again: %+v, %+v, want %+v", h2, p, h)
		}
	})
}
