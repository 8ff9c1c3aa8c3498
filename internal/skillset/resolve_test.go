package skillset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		".agents/skills/latin/SKILL.md": "---\nname: latin\ndescription: a \xff\xfe thing\n---\nBody\n",
		".agents/skills/bidi/SKILL.md": "\ufeff---\r\nname: bidi\r\ndescription: \"a \u202eb\u202c \u200bc \U000e0041 \\u2066d \U0001f469\u200d\U0001f469\ufe0f \\e[31m e\\tf\"\r\n---\r\n" +
			"Body \u202e here\r, \xff and \u0600, \U0001f469\u200d\U0001f469\ufe0f stay.",
		".agents/skills/na\u200bme/SKILL.md": skillText("na\u200bme", ""),
	})
	s := Resolve(base, project())
	if len(s.Skills) != 3 || s.Skills[1].Slug != "latin" || s.Skills[2].Slug != "na-me" {
		t.Fatalf("skills %q, diagnostics %q", slugs(s), told(s, base))
	}
	got := []string{s.Skills[0].Description, s.Skills[0].Body}
	want := []string{
		"a \ufffdb\ufffd \ufffdc \ufffd \ufffdd \U0001f469\u200d\U0001f469\ufe0f \ufffd[31m e f",
		"Body \ufffd here\n, \ufffd and \u0600, \U0001f469\u200d\U0001f469\ufe0f stay.",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	wantTold := []string{
		"hidden_characters BASE/.agents/skills/bidi/SKILL.md: 8 characters that hide or are not UTF-8 were replaced",
		"hidden_characters BASE/.agents/skills/latin/SKILL.md: 2 characters that hide or are not UTF-8 were replaced",
		`invalid_name BASE/.agents/skills/na\u{200b}me/SKILL.md: the name is not 1 to 64 of a-z, 0-9 and single hyphens inside; what is left of it without other characters is used`,
		`hidden_characters BASE/.agents/skills/na\u{200b}me/SKILL.md: 1 character that hides or is not UTF-8 was replaced`,
	}
	if diff := cmp.Diff(told(s, base), wantTold); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestNoWorkingDirectory(t *testing.T) {
	t.Parallel()
	base := build(t, files{"user/mine/SKILL.md": skillText("mine", "")})
	for _, dir := range []string{"", "relative/path", filepath.Join(base, "absent")} {
		s := Resolve(dir, project(".agents/skills", "../up", filepath.Join(base, "user")))
		if diff := cmp.Diff(slugs(s), []string{"mine"}); diff != "" || s.Root != "" || len(s.Diagnostics) > 0 {
			t.Errorf("in %q: root %q, diagnostics %q (-got +want)\n%s", dir, s.Root, told(s, base), diff)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		tree  func() files
		count int
		codes []Code
	}{
		{"too many skills", func() files {
			tree := files{}
			for i := range maxSkills + 3 {
				tree[fmt.Sprintf(".agents/skills/s%03d/SKILL.md", i)] = skillText(fmt.Sprintf("s%03d", i), "")
			}
			return tree
		}, maxSkills, []Code{CodeTooMany}},
		{"too many entries", func() files {
			tree := files{".agents/skills/a/SKILL.md": skillText("a", "")}
			for i := range maxEntries {
				tree[fmt.Sprintf(".agents/skills/f%04d", i)] = ""
			}
			return tree
		}, 0, []Code{CodeTooMany}},
		{"file at the limit", func() files {
			return files{".agents/skills/a/SKILL.md": fill(skillText("a", ""), maxSkill)}
		}, 1, nil},
		{"file beyond the limit", func() files {
			return files{".agents/skills/a/SKILL.md": fill(skillText("a", ""), maxSkill+1)}
		}, 0, []Code{CodeTooLarge}},
		{"too much together", func() files {
			tree := files{}
			for i := range maxTotal/maxSkill + 2 {
				name := fmt.Sprintf("s%03d", i)
				tree[".agents/skills/"+name+"/SKILL.md"] = fill(skillText(name, ""), maxSkill)
			}
			return tree
		}, maxTotal / maxSkill, []Code{CodeTooLarge}},
		{"too many diagnostics", func() files {
			tree := files{}
			for i := range maxProblems + 5 {
				tree[fmt.Sprintf(".agents/skills/s%03d/SKILL.md", i)] = "damaged"
			}
			return tree
		}, 0, []Code{CodeFrontMatter, CodeTooMany}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Resolve(build(t, tt.tree()), project())
			if len(s.Skills) != tt.count {
				t.Errorf("%d skills, want %d", len(s.Skills), tt.count)
			}
			if diff := cmp.Diff(sortedCodes(s), tt.codes); diff != "" || len(s.Diagnostics) > maxProblems {
				t.Errorf("%d diagnostics (-got +want)\n%s", len(s.Diagnostics), diff)
			}
		})
	}
}

// fill makes a text n bytes long.
func fill(text string, n int) string { return text + strings.Repeat("x", n-len(text)) }

func TestTooManyDirectories(t *testing.T) {
	t.Parallel()
	tree, o := files{}, project()
	for i := range maxDirectories + 2 {
		directory := fmt.Sprintf("f%03d", i)
		tree[directory+"/"+directory+"/SKILL.md"] = skillText(directory, "")
		o.Directories = append(o.Directories, directory)
	}
	s := Resolve(build(t, tree), o)
	if len(s.Skills) != maxDirectories {
		t.Errorf("%d skills, want %d", len(s.Skills), maxDirectories)
	}
	if diff := cmp.Diff(codes(s), []Code{CodeTooMany, CodeTooMany}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestDeepDirectory(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", maxLevels+8)
	base := build(t, files{".agents/skills/top/SKILL.md": skillText("top", ""), ".git/": "", deep: ""})
	s := Resolve(filepath.Join(base, filepath.FromSlash(deep)), project())
	if len(s.Skills) != 0 || !strings.HasSuffix(s.Root, "d") {
		t.Errorf("root %q, skills %q: the walk has no end", s.Root, slugs(s))
	}
}

func TestRel(t *testing.T) {
	t.Parallel()
	base := build(t, files{"real/.git/": "", "real/app/": "", "named": "-> real", "into": "-> real/app"})
	tests := []struct {
		dir, path, want string
	}{
		{"real/app", "real/app/x.go", "app/x.go"},
		{"real/app", "real", "."},
		{"real/app", "other/x.go", ""},
		{"real/app", "realistic/x.go", ""},
		{"named/app", "named/app/x.go", "app/x.go"},
		{"named/app", "named/y.go", "y.go"},
		{"named/app", "real/y.go", "y.go"},
		{"named", "named/y.go", "y.go"},
		{"into", "into/x.go", ""}, // the names do not agree: what is above is unknown
		{"into", "real/app/x.go", "app/x.go"},
	}
	for _, tt := range tests {
		t.Run(tt.dir+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			s := Resolve(filepath.Join(base, tt.dir), project())
			got, ok := s.Rel(filepath.Join(base, tt.path))
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, tt.want)
			}
		})
	}
	if got, ok := (&Set{}).Rel(base); ok {
		t.Errorf("without a root: %q", got)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("the superuser reads everything")
	}
	base := build(t, files{"s/a/SKILL.md": skillText("a", ""), "s/b/SKILL.md": skillText("b", "")})
	if err := os.Chmod(filepath.Join(base, "s/a/SKILL.md"), 0); err != nil {
		t.Fatal(err)
	}
	s := Resolve(base, project("s"))
	if diff := cmp.Diff(codes(s), []Code{CodePermission}); diff != "" || len(s.Skills) != 1 {
		t.Errorf("skills %q (-got +want)\n%s", slugs(s), diff)
	}
}
