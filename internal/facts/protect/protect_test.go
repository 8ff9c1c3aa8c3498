package protect_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

func defaults(tb testing.TB) *protect.Set {
	tb.Helper()
	set, err := protect.New(protect.Defaults())
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func TestPath(t *testing.T) {
	t.Parallel()
	set := defaults(t)
	for path, want := range map[string]string{
		".env": ".env", "a/.env": ".env", "/a/../.env": ".env", "A/.ENV": ".env", `a\.env`: ".env", "file:///a/.env": ".env", "FILE:/a/%2Eenv": ".env", ".env\x00.txt": ".env.*", "id_dsa\x00x": "id_dsa", ".e\u00adnv": ".env",
		"\uff0eenv": ".env", ".env\u00a0": ".env", ".env.": ".env", ".env::$DATA": ".env", ".env/": ".env", ".env.local": ".env.*", "x.PEM": "*.pem", "a/.ssh/config": ".ssh/", "~/.ssh": ".ssh/", ".aws/credentials": ".aws/credentials",
		"service-account.json": "service-account*.json", "service-account-x.json": "service-account*.json", "/etc/shadow": "/etc/shadow", "/proc/7/environ": "/proc/*/environ",
		"": "", "/": "", ".": "", "service-account": "", "env": "", ".environment": "", ".env/bin/x": "", ".env.example": "", "x.env": "", "credentials": "", "aws/credentials": "", "a/etc/shadow": "", "id_rsa.pub": "", ".ssh/known_hosts": "", "pem": "", "%zz": "",
	} {
		if got, ok := set.Path(path); got != want || ok != (want != "") {
			t.Errorf("%q: %q %t, want %q", path, got, ok, want)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	set := defaults(t)
	for glob, want := range map[string]bool{
		".e*": true, ".??v": true, "?env": false, "a/.env*": true, "*.pem": true, "*.p*": true, "id_*": true, ".env.*": true, "~/.aws/c*": true, "~/.aws/*": true,
		"*": false, ".*": false, "*.ts": false, "*.json": false, "*.k": false, "*env": false, ".g*": false, "src/*.md": false, "c*": false, "": false, "/": false,
	} {
		if _, ok := set.Glob(glob); ok != want {
			t.Errorf("%q: %t, want %t", glob, ok, want)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	star := string(shell.Star)
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{star, "a", true},
		{star, ".a", false},
		{"." + star, ".a", true},
		{star + ".ts", "a.ts", true},
		{star + ".ts", "a.go", false},
		{"a" + string(shell.Any), "ab", true},
		{"a" + string(shell.Any), "a", false},
		{"", "", true},
		{"a*b", "a*b", true},
		{"x", "*", false},
		{"A", "a", true},
	} {
		if got := protect.Match(tt.glob, tt.name); got != tt.want {
			t.Errorf("%q %q: %t", tt.glob, tt.name, got)
		}
	}
}

// FuzzPath: what lies below a directory is protected as its name alone is, and long names do no harm.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{".env", "%2e", "\x00", `\`, "file:", "ſ", ".env/../x", strings.Repeat("../", 100)} {
		f.Add(seed)
	}
	set := defaults(f)
	f.Fuzz(func(t *testing.T, name string) {
		_, alone := set.Path(name)
		_, below := set.Path("/x/" + strings.TrimLeft(name, "/"))
		if alone && !below && !strings.ContainsAny(name, `./\%:`) {
			t.Errorf("%q is protected, but not in a directory", name)
		}
		set.Glob(name)
		protect.Match(name, name)
	})
}
