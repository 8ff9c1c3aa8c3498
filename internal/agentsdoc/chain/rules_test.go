package chain

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExclude(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"AGENTS.md", "AGENTS.md", true},
		{"AGENTS.md", "a/b/AGENTS.md", true},
		{"/AGENTS.md", "a/AGENTS.md", false},
		{"vendor", "a/vendor/b/AGENTS.md", true},
		{"vendor/", "vendor/AGENTS.md", true},
		{"vendor", "vendors/AGENTS.md", false},
		{"a/vendor", "a/vendor/b/AGENTS.md", true},
		{"a/vendor", "b/a/vendor/AGENTS.md", false},
		{"**/vendor", "b/a/vendor/AGENTS.md", true},
		{"**/vendor", "vendor/AGENTS.md", true},
		{"a/**/x", "a/x/AGENTS.md", true},
		{"a/**/x", "a/b/c/x/AGENTS.md", true},
		{"a/**/x", "a/b/c/AGENTS.md", false},
		{"a/**/**/x", "a/b/x/AGENTS.md", true},
		{"a/**", "a/AGENTS.md", true},
		{"a/*/AGENTS.md", "a/b/AGENTS.md", true},
		{"a/*/AGENTS.md", "a/b/c/AGENTS.md", false},
		{"*.local.md", "a/AGENTS.local.md", true},
		{"AGENTS.?d", "AGENTS.md", true},
		{"A[F-H]ENTS.md", "AGENTS.md", true},
		{"agents.md", "AGENTS.md", false},
	}
	for _, tt := range tests {
		if !IsGlob(tt.pattern) {
			t.Errorf("%q is no pattern", tt.pattern)
		}
		if got := Excluded([]string{tt.pattern}, tt.path); got != tt.want {
			t.Errorf("%q excludes %q: %t, want %t", tt.pattern, tt.path, got, tt.want)
		}
	}
	for _, bad := range []string{"", "/", "a//b", "[a", "a/../b", ".."} {
		if IsGlob(bad) {
			t.Errorf("%q counts as a pattern", bad)
		}
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		trust Trust
		allow []string
		want  bool
	}{
		{"all", TrustAll, nil, true},
		{"none", TrustNone, []string{"BASE/r"}, false},
		{"not listed", TrustListed, []string{"BASE/other"}, false},
		{"nothing listed", TrustListed, nil, false},
		{"listed", TrustListed, []string{"BASE/r"}, true},
		{"listed from above", TrustListed, []string{"BASE"}, true},
		{"listed below", TrustListed, []string{"BASE/r/a"}, false},
		{"listed under another name", TrustListed, []string{"BASE/s"}, true},
		{"listed with a path that is not absolute", TrustListed, []string{"r", "."}, false},
		{"a word that is none", "some", []string{"BASE"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, files{"r/.git/": "", "r/a/AGENTS.md": "x", "other/": "", "s": "-> r"})
			o := defaults(func(o *Options) { o.Trust = tt.trust })
			for _, path := range tt.allow {
				o.Allow = append(o.Allow, strings.Replace(path, "BASE", base, 1))
			}
			c := Resolve(OS{}, filepath.Join(base, "r/a"), o)
			if got := c.Sources[0].State == StateKept; got != tt.want {
				t.Errorf("trusted: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestUntrustedIsNoDoor(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "secret word", "AGENTS.local.md": "secret word", "g/AGENTS.md": "secret word"})
	view := &faultFS{FS: OS{}}
	c := Resolve(view, base, defaults(func(o *Options) { o.Trust, o.GlobalDir = TrustNone, filepath.Join(base, "g") }))
	if c.Sources[0].State != StateKept || c.Sources[0].Scope != ScopeGlobal {
		t.Errorf("a file that is not trusted takes the place of the user's: %+v", c.Sources[0])
	}
	if slices.Contains(view.opened, filepath.Join(base, "AGENTS.local.md")) {
		t.Error("the local file of a root that is not trusted was opened")
	}
	text := Render(c, Budget{plenty, plenty}).Text
	if strings.Count(text, "secret word") != 1 || strings.Count(text, "untrusted root]") != 2 {
		t.Errorf("text is\n%s", text)
	}
}

func TestResolveTouched(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"r/.git/": "", "r/AGENTS.md": "one", "r/in": "-> docs", "r/docs/AGENTS.md": "two", "r/docs/deep/AGENTS.md": "three",
		"r/out": "-> ../elsewhere", "elsewhere/AGENTS.md": "key", "elsewhere/deep/AGENTS.md": "key", "r/a/up": "-> ../..",
		"r/log": "-> .git/logs", "r/.git/logs/AGENTS.md": "key",
		"r/heads": "-> store/refs/heads", "r/store/HEAD": "", "r/store/objects/": "", "r/store/refs/heads/AGENTS.md": "key",
	})
	one := "kept project AGENTS.md: one"
	tests := []struct{ name, dir, want string }{
		{"inside", "r/docs", lines(one, "kept project docs/AGENTS.md: two")},
		{"by a link inside", "r/in/deep", lines(one, "kept project in/AGENTS.md: two", "kept project in/deep/AGENTS.md: three")},
		{"by a link out", "r/out/deep", lines(one, "! error symlink_escape r/out")},
		{"by a link up", "r/a/up/r", lines(one, "! error symlink_escape r/a/up")},
		{"by a link into git's files", "r/log", lines(one, "! error git_metadata r/log")},
		{"by a link into what git's files look like", "r/heads", lines(one, "! error git_metadata r/heads")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := ResolveTouched(OS{}, filepath.Join(base, tt.dir), defaults(func(o *Options) { o.Root = filepath.Join(base, "r") }))
			if diff := cmp.Diff(outline(c, base), lines(`root "r" found=true`)+tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
	if c := Resolve(OS{}, filepath.Join(base, "r/out/deep"), Options{}); len(c.Sources) != 3 {
		t.Errorf("a working directory that a person named: %s", outline(c, base))
	}
}

func TestFrameIsTheLongest(t *testing.T) {
	t.Parallel()
	for _, name := range []Preset{PresetDefault, PresetCodex, PresetCodelia} {
		o := preset(t, name)
		o.ChildHint = true
		for _, tree := range []files{{".git/": ""}, {".git/": "", "AGENTS.md": "x"}} {
			c := Resolve(OS{}, build(t, tree), o)
			r := Render(c, Budget{plenty, plenty})
			f := c.Frame()
			if len(r.Frame.Open) > len(f.Open) || r.Frame.Close != f.Close {
				t.Errorf("%s: %+v is longer than %+v", name, r.Frame, f)
			}
			if r.Text != "" && r.Message() != r.Frame.Open+"\n"+r.Content+"\n"+r.Frame.Close {
				t.Errorf("%s: the message is %q", name, r.Message())
			}
		}
	}
}
