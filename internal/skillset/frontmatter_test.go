package skillset

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseSkill(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxDescription)
	tests := []struct {
		name, in, body string
		description    string
		code           Code
	}{
		{"usual", "---\nname: a\ndescription: b\n---\n\nBody\n\nmore\n\n", "Body\n\nmore", "b", ""},
		{"no body", "---\nname: a\ndescription: b\n---", "", "b", ""},
		{"byte order mark and CRLF", "\ufeff---\r\nname: a\r\ndescription: b\r\n---\r\nBody\r\n", "Body", "b", ""},
		{"blanks behind the lines", "--- \nname: a\ndescription: b\n---\t\nBody", "Body", "b", ""},
		{"line of the body", "---\nname: a\ndescription: b\n---\nx\n---\ny", "x\n---\ny", "b", ""},
		{"literal", "---\nname: a\ndescription: |\n  one\n  two\n---", "", "one two", ""},
		{"quoted colon", "---\nname: a\ndescription: 'b: c'\n---", "", "b: c", ""},
		{"comment", "---\n# x\nname: a # y\ndescription: b\n---", "", "b", ""},
		{"flow", "---\n{name: a, description: b}\n---", "", "b", ""},
		{"longest", "---\nname: a\ndescription: " + long + "\n---", "", long, ""},
		{"too long", "---\nname: a\ndescription: " + long + "x\n---", "", long[:len(long)-2] + "…", CodeDescription},
		{"blank line first", "\n---\nname: a\ndescription: b\n---", "", "", CodeFrontMatter},
		{"four hyphens", "----\nname: a\n----", "", "", CodeFrontMatter},
		{"too much of it", "---\nname: a\ndescription: b\n# " + strings.Repeat("x", maxHeader) + "\n---", "", "", CodeFrontMatter},
		{"null description", "---\nname: a\ndescription:\n---", "", "", CodeDescription},
		{"list as a name", "---\nname: [a]\ndescription: b\n---", "", "b", CodeName},
		{"NUL in an escape", "---\nname: \"a\\0\"\ndescription: b\n---", "", "b", CodeName},
		{"another name", "---\nname: other\ndescription: b\n---", "", "b", CodeName},
		{"no name", "---\ndescription: b\n---", "", "b", CodeName},
		{"colon without quotes", "---\nname: a\ndescription: Use when: it's late\n---", "", "Use when: it's late", CodeFrontMatter},
		{"colon in a folded text", "---\nname: a\ndescription: Use when:\n  it is late: now\n---", "", "Use when: it is late: now", CodeFrontMatter},
		{"hint", "---\nname: a\ndescription: b\nargument-hint: [action] — e.g. \"list\"\n---", "", "b", CodeFrontMatter},
		{"apostrophe", "---\nname: a\ndescription: 'Don't use it twice'\n---", "", "Don't use it twice", CodeFrontMatter},
		{"bracket", "---\nname: a\ndescription: [beta] does a thing\n---", "", "[beta] does a thing", CodeFrontMatter},
		{"tag", "---\nname: a\ndescription: !important rules\n---", "", "!important rules", CodeFrontMatter},
		{"anchor", "---\nname: a\ndescription: &also this\n---", "", "&also this", CodeFrontMatter},
		{"quoted word", "---\nname: a\ndescription: \"Quoted\" word first\n---", "", "\"Quoted\" word first", CodeFrontMatter},
		{"two quoted words", "---\nname: a\ndescription: \"one\" and \"two\"\n---", "", "\"one\" and \"two\"", CodeFrontMatter},
		{"hashtags", "---\nname: a\ndescription: Use #hashtags and C# code\n---", "", "Use #hashtags and C# code", CodeFrontMatter},
		{"hashtag first", "---\nname: a\ndescription: #hashtags\n  and more\n---", "", "#hashtags and more", CodeFrontMatter},
		{"not for models", "---\nname: a\ndescription: [b] c\ndisable-model-invocation: true\n---", "", "[b] c", CodeFrontMatter},
		{"commented key", "---\nname: a\n#description: x\ndescription: b\n---", "", "b", ""},
		{"at sign", "---\nname: a\ndescription: @file is read\n---", "", "@file is read", CodeFrontMatter},
		{"brace", "---\nname: a\ndescription: {x} is set\n---", "", "{x} is set", CodeFrontMatter},
		{"literal beside it", "---\nname: a\nhint: [x] y\ndescription: |\n  Note: one\n  [two] three\n---", "", "Note: one [two] three", CodeFrontMatter},
		{"nested", "---\nname: a\ndescription: b\nmetadata:\n  hint: [x] y\n  more: !z\n---", "", "b", CodeFrontMatter},
		{"elements", "---\nname: a\ndescription: b\nallowed-tools:\n- [x] y\n- *.go\n- c\n---", "", "b", CodeFrontMatter},
		{"pattern without quotes", "---\nname: a\ndescription: b\npaths: *.go\n---", "", "b", CodeFrontMatter},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, body, p := parseSkill(tt.in, "a")
			if p == nil && len(h.notes) > 0 {
				p = h.notes[0]
			} else if p == nil {
				p = &FileError{}
			}
			if p.Code != tt.code || h.notForModels != (tt.name == "not for models") || body != tt.body && tt.code == "" || h.description != tt.description {
				t.Errorf("got %+v, body %q, %+v", h, body, p)
			}
		})
	}
}

// TestMistakes: what is wrong with front matter is said with the line, the cause and what to do.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		yaml string
		line int
		want string
	}{
		{"name: a\ndescription: b\n# x\ndescription: c\n", 5, "its key is there twice; remove one"},
		{"name: a\ndescription: b\nmetadata:\n  x: 1\n  'x': 2\n", 6, "its key is there twice"},
		{"name: a\n description: b\n", 2, "a key stands in the value of another one"},
		{"name: a\ndescription: b\n  hint: c\n", 3, "the lines below it are indented, and so a part of it"},
		{" name: a\ndescription: b\n", 3, "its indentation matches no line above"},
		{"name: a\ndescription: b\nmetadata:\n   x: 1\n  y: 2\n", 6, "its indentation matches no line above"},
		{"name: a\ndescription: b\nmetadata:\n\tx: 1\n", 5, "a tab stands before it"},
		{"name: a\ndescription: >\nb c\n", 4, "and blanks before a text that goes on"},
		{"name: a\ndescription:b\n", 3, "put a colon and a blank behind the key"},
		{"name: a\ndescription b\n", 3, "it is not KEY: VALUE"},
		{"name = a\n", 2, "there are no keys with values"},
		{"name: a\ndescription: b\n: c\n", 3, "a key stands in the value"},
		{"name: a\ndescription: b\n<<: {x: y}\n", 4, "<< are not"},
		{"- name: a\n- description: b\n", 2, "there are no keys with values"},
		{"name: a\nDescription: b\n", 3, "there is no key description; this one is misspelt: keys are in lower case"},
		{"descriptions: b\nname: a\n", 2, "there is no key description; this one is near it: write description"},
		{"name: a\n", 1, "there is no key description; write description: and a text"},
		{"name: a\ndescription:\n", 3, "has no text behind the colon"},
		{"name: a\ndescription: ''\n", 3, "has an empty text"},
		{"name: a\ndescription: [b]\n", 3, "is a list"},
		{"name: a\ndescription: 4.2\n", 3, "is not a text; put it in quotes"},
		{"Name: a\ndescription: b\n", 2, "there is no key name; this one is misspelt: keys are in lower case, with hyphens; the directory's name is used"},
		{"name: 1\ndescription: b\n", 2, "the name is not a text; put it in quotes; the directory's name is used"},
		{"name: a\ndescription: b\ndisable-model-invocation: yes\n", 4, "is neither true nor false, and does not count"},
		{"name: a\ndescription: b\ndisable-model-invocation:\n", 4, "is neither true nor false, and does not count"},
		{"name: a\ndescription: b\ndisable_model_invocation: true\n", 4, "this one is misspelt"},
		{"name: a\ndescription: b\ndisable-model-invokation: true\n", 4, "this one is near it: write disable-model-invocation"},
		{"name: a\ndescription: b\nPaths: '*.go'\n", 4, "there is no key paths; this one is misspelt"},
		{"name: a\ndescription: b\npaths: {x: y}\n", 4, "paths is neither a text nor a list"},
		{"name: a\ndescription: \"b\n", 3, "its quotation marks do not match; the value was taken as a text"},
		{"name: a\ndescription: b: c\n", 3, "a colon with a blank behind it stands in it"},
		{"name: a\ndescription: b\nhint: [x] y\n", 4, "it begins with a bracket"},
		{"name: a\ndescription: b #c\n", 3, "YAML cuts it at the #"},
		{"name: a\ndescription: |\n    b\n  c\n", 3, "the lines of its text are not indented alike"},
		{"name: a\ndescription: b\n ---\n", 4, "this line is not --- alone"},
	} {
		end := "---\n"
		if strings.HasSuffix(tt.yaml, end) {
			end = ""
		}
		h, _, p := parseSkill("---\n"+tt.yaml+end, "a")
		if p == nil && len(h.notes) > 0 {
			p = h.notes[0]
		}
		if p == nil || p.line != tt.line || !strings.Contains(p.Detail, tt.want) {
			t.Errorf("%q: got %+v, want line %d: %s", tt.yaml, p, tt.line, tt.want)
		}
	}
	for _, value := range []string{"true", "True", "TRUE", "'true'"} {
		if h, _, _ := parseSkill("---\nname: a\ndescription: b\ndisable-model-invocation: "+value+"\n---\n", "a"); !h.notForModels {
			t.Errorf("%s lets models have the skill", value)
		}
	}
}

func TestValidSlug(t *testing.T) {
	t.Parallel()
	for _, slug := range []string{"a", "0", "pdf-processing", "a-1-b", strings.Repeat("a", 64)} {
		if !validSlug(slug) {
			t.Errorf("%q is refused", slug)
		}
	}
	for _, slug := range []string{"", "-a", "a-", "a--b", "A", "a_b", "a.b", "a b", "é", "..", "a/b", "a\x00", strings.Repeat("a", 65)} {
		if validSlug(slug) {
			t.Errorf("%q is accepted", slug)
		}
	}
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
		"braces":         "k: " + strings.Repeat("{", room),
		"braces of keys": "k: " + strings.Repeat("{a: ", room/4),
		"chain of keys":  strings.Repeat("a: ", room/3),
		"flow chain":     "k: {" + strings.Repeat("a: ", room/3) + "}",
		"lists":          strings.Repeat("- ", room/2),
		"blank lines":    "k: |\n" + strings.Repeat("\n", room) + " x",
		"blanks":         "k: >\n" + strings.Repeat(" \n", room/2) + " x",
		"quote":          "k: \"" + strings.Repeat("\n\n", room/2),
		"escapes":        "k: \"" + strings.Repeat(`\u0041`, room/6) + "\"",
		"comments":       strings.Repeat("#\n", room/2),
		"tabs":           strings.Repeat("\t", room),
		"questions":      strings.Repeat("? ", room/2),
		"pipes":          strings.Repeat("a: |\n", room/5),
		"documents":      strings.Repeat("...\n", room/4),
		"directive":      "%YAML 1.2\n",
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

func TestReveal(t *testing.T) {
	t.Parallel()
	type out struct {
		Text  string
		Count int
	}
	for in, want := range map[string]out{
		"plain\ttext\n":        {"plain\ttext\n", 0},
		"a\x00\x1b[1m\x7fb":    {"a\ufffd\ufffd[1m\ufffdb", 3},
		"\u00ad\u2028\u3164":   {"\ufffd\ufffd\ufffd", 3},
		"\ufffd stays":         {"\ufffd stays", 0},
		"\xe9\xff":             {"\ufffd\ufffd", 2},
		"\U000e0061\ufe01":     {"\ufffd\ufffd", 2},
		"\u06dd \u200c \ufe0f": {"\u06dd \u200c \ufe0f", 0},
		"\U000e0080":           {"\ufffd", 1},
		"\u0085":               {"\ufffd", 1},
	} {
		text, n := reveal(in)
		if diff := cmp.Diff(out{text, n}, want); diff != "" {
			t.Errorf("%q (-got +want)\n%s", in, diff)
		}
	}
}
