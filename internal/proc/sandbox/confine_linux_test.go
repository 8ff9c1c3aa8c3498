package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shell is a dynamically linked program that every system has.
const shell = "/bin/sh"

// needLandlock skips a test where T1 cannot be reached, and says why.
func needLandlock(t *testing.T) {
	t.Helper()

	if err := Probe().Check(Policy{}); err != nil {
		t.Skip(err)
	}
}

// fixture makes a directory to be granted and another one beside it, each with a file "f".
func fixture(t *testing.T) (granted string) {
	t.Helper()

	dir := t.TempDir()
	granted, other := filepath.Join(dir, "granted"), filepath.Join(dir, "other")
	for _, d := range []string{granted, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "f"), []byte("text of "+filepath.Base(d)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return granted
}

func TestConfinedShell(t *testing.T) {
	t.Parallel()
	needLandlock(t)

	tests := []struct {
		name, script string
		grant        func(p *Policy, dir string)
		want         string
		fails        bool
	}{
		{"runs at all", "echo hello", nil, "hello", false},
		{"its directory is its own", "echo a > x && mkdir d && mv x d/y && ln d/y z && cat z && rm -r d z", nil, "a", false},
		{"devices that everything uses", "echo a > /dev/null && head -c 1 /dev/urandom | wc -c", nil, "1", false},
		{"no reading without a grant", "read x < $DIR/f", nil, "Permission denied", true},
		{"reading with a grant", `read x < $DIR/f; echo "$x"`, func(p *Policy, dir string) { p.Read = []string{dir} }, "text of granted", false},
		{"a file alone", `read x < $DIR/f; echo "$x"`, func(p *Policy, dir string) { p.Read = []string{dir + "/f"} }, "text of granted", false},
		{"a grant to read is none to write", "echo > $DIR/f", func(p *Policy, dir string) { p.Read = []string{dir} }, "Permission denied", true},
		{"writing with a grant", `echo b > $DIR/g; read x < $DIR/g; echo "$x"`, func(p *Policy, dir string) { p.Write = []string{dir} }, "b", false},
		{"everything", `echo b > $DIR/g; read x < /proc/self/stat; echo ok`, func(p *Policy, _ string) { p.Write = []string{"/"} }, "ok", false},
		{"nothing of other processes", "read x < /proc/1/stat", nil, "Permission denied", true},
		{"no home", "ls -a $HOME_OF_HOST", nil, "ermission denied", true},
		{"limit of descriptors", "read x; ulimit -n; ulimit -Hn", nil, "4096\n4096", false},
		{"limit of a file's length", "read x; ulimit -Hf", func(p *Policy, _ string) { p.Limits.FileSize = 1 << 20 }, "2048", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			granted := fixture(t)
			var p Policy
			if tt.grant != nil {
				tt.grant(&p, granted)
			}
			script := "DIR=" + granted + "; HOME_OF_HOST=" + filepath.Dir(granted) + "; " + tt.script
			got := runConfined(t, p, true, shell, "-c", script)
			if (got.code != 0) != tt.fails || !strings.Contains(got.output, tt.want) {
				t.Errorf("status %d, output %q; want failure: %v, with %q", got.code, got.output, tt.fails, tt.want)
			}
		})
	}
}

func TestAbsentGrants(t *testing.T) {
	t.Parallel()
	needLandlock(t)

	dir := t.TempDir()
	c, err := Prepare(Policy{Read: []string{dir + "/no", dir}, Write: []string{"/dev/null/x"}}, Program{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close() // harmless
	if diff := cmp.Diff(c.Absent, []string{dir + "/no", "/dev/null/x"}); diff != "" {
		t.Errorf("absent (-got +want):\n%s", diff)
	}
}
