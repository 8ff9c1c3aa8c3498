package chain

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExclude(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"vendor/", "vendor/AGENTS.md", true},
		{"vendor", "vendors/AGENTS.md", false},
		{"a/vendor", "a/vendor/b/AGENTS.md", true},
		{"a/vendor", "b/a/vendor/AGENTS.md", false},
		{"a/**/x", "a/b/c/x/AGENTS.md", true},
		{"a/**", "a/AGENTS.md", true},
		{"*.local.md", "a/AGENTS.local.md", true},
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
