package chain

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportBounds(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("@./x.md\n", 40)
	tests := []struct {
		name    string
		tree    files
		set     func(o *Options)
		want    string // of the nearest source's text
		refused []string
	}{
		{
			"more than 32, reported once",
			files{"AGENTS.md": many, "x.md": "X\n"},
			nil,
			strings.Repeat("X\n", 32) + strings.TrimSuffix(strings.Repeat("@./x.md\n", 8), "\n"),
			[]string{"line 33: @./x.md: more than 32 imports"},
		},
		{
			"refused ones count",
			files{"AGENTS.md": strings.Repeat("@./no.md\n", 32) + "@./x.md", "x.md": "X"},
			nil,
			strings.Repeat("@./no.md\n", 32) + "@./x.md", append(repeatLines(32, "@./no.md: there is no such file"), "line 33: @./x.md: more than 32 imports"),
		},
		{
			"64 KiB to the byte, and one more",
			files{"AGENTS.md": "@./a.md\n@./b.md\n@./c.md\n", "a.md": filler(40 << 10), "b.md": filler(24 << 10), "c.md": "c"},
			func(o *Options) { o.Budget.File = 1 << 20 },
			filler(40<<10) + "\n" + filler(24<<10) + "\n@./c.md",
			[]string{"line 3: @./c.md: more than 64 KiB of imports"},
		},
		{
			"what does not fit takes no room",
			files{"AGENTS.md": "@./a.md\n@./c.md\n", "a.md": filler(65 << 10), "c.md": "c"},
			nil,
			"@./a.md\nc",
			[]string{"line 1: @./a.md: more than 64 KiB of imports"},
		},
		{
			"each other",
			files{"AGENTS.md": "@./a.md", "a.md": "A\n@./b.md", "b.md": "B\n@./a.md"},
			nil,
			"A\nB\n@./a.md",
			[]string{"line 2: @./a.md: the file imports itself"},
		},
		{
			"with the newlines of other systems",
			files{"AGENTS.md": "one\r\n@./a.md\r\ntwo\r\n", "a.md": "\ufeffA\r\nB\r\n"},
			nil,
			"one\nA\nB\ntwo", nil,
		},
		{
			"through a link inside the root",
			files{"AGENTS.md": "@./l/a.md", "l": "-> docs", "docs/a.md": "A"},
			nil,
			"A", nil,
		},
		{
			"nothing but an import of nothing",
			files{"AGENTS.md": "@./a.md", "a.md": "\n"},
			nil,
			"", nil,
		},
		{
			"named in code, after what is left out, and in parentheses",
			files{"AGENTS.md": "---\nx: y\n---\n<!-- @a.md\n-->\n\nWrite `@a.md`.\n\nSee (@a.md).\n\n@.git/config\n", "a.md": "A", ".git/config": "c"},
			func(o *Options) { o.Imports, o.Markdown = ImportListed, true },
			"Write `@a.md`.\n\nSee (@a.md).\n\n@.git/config",
			[]string{"line 11: @.git/config: the link leads into git's own files", "line 9: @a.md: " + string(refuseStray)},
		},
		{
			"named by a file that is imported twice",
			files{"AGENTS.md": "@b.md\n@b.md\n", "b.md": "```\n@a.md\n```\n(@a.md)", "a.md": "A"},
			func(o *Options) { o.Imports = ImportInline },
			strings.TrimSuffix(strings.Repeat("<!-- Imported from: b.md -->\n```\n@a.md\n```\n(@a.md)\n<!-- End of import from: b.md -->\n", 2), "\n"),
			[]string{"line 4: @a.md: " + string(refuseStray)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.tree[".git/"] = ""
			o := defaults(importLines)
			if tt.set != nil {
				tt.set(&o)
			}
			c := Resolve(OS{}, build(t, tt.tree), o)
			if s := c.Sources[0]; s.Text != tt.want || (s.State == StateKept) != (tt.want != "") {
				t.Errorf("%s: got %.200q, want %.200q", s.State, s.Text, tt.want)
			}
			var refused []string
			for _, d := range c.Diagnostics {
				if d.Code == CodeImportRefused {
					refused = append(refused, d.Detail)
				}
			}
			if fmt.Sprint(refused) != fmt.Sprint(tt.refused) {
				t.Errorf("refused %q, want %q", refused, tt.refused)
			}
		})
	}
}

// repeatLines is a detail for each of the first n lines.
func repeatLines(n int, detail string) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("line %d: %s", i+1, detail))
	}
	return out
}

func TestKeptNeverExceedsTheFile(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "one\r\n@./a.md\r\n" + numbered(600), "a.md": numbered(2000)})
	c := Resolve(OS{}, base, defaults(importLines))
	size := c.Sources[0].Bytes
	rng := rand.New(rand.NewPCG(41, 42))
	last := int64(0)
	for n := 400; n < 3200; n += 1 + rng.IntN(20) {
		s := Render(c, Budget{n, plenty}).Sources[0]
		if s.Kept < last || s.Kept > size || s.State == StateTruncated && s.Kept == size {
			t.Fatalf("budget %d: %s, kept %d of %d, %d before", n, s.State, s.Kept, size, last)
		}
		last = s.Kept
	}
	if last != size {
		t.Errorf("kept %d of %d in the end", last, size)
	}
}

func FuzzImports(f *testing.F) {
	f.Add("@./a.md\n```\n@./a.md\n", "@../AGENTS.md")
	f.Add("@./AGENTS.md", "~~~\n@./a.md")
	f.Fuzz(func(t *testing.T, text, imported string) {
		base := build(t, files{".git/": "", "AGENTS.md": "x" + text, "a.md": imported, "d/secret": "", "secret": ""})
		view := &faultFS{FS: OS{}}
		c := Resolve(view, filepath.Join(base, "d"), defaults(func(o *Options) { o.Imports, o.Root = ImportLines, base }))
		for _, path := range view.opened {
			if !Within(base, path) {
				t.Errorf("opened %s", path)
			}
		}
		checkRendering(t, c, Budget{1000, 900}, Render(c, Budget{1000, 900}))
	})
}

// defaults are the default options with a change.
func defaults(change func(o *Options)) Options {
	o := Default()
	change(&o)
	return o
}

func importLines(o *Options) { o.Imports = ImportLines }
