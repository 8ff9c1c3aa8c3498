package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/builtin"
)

var update = flag.Bool("update", false, "write what the example prints into testdata")

// runMain is set in the environment of the process that is the example.
const runMain = "RUN_EXAMPLE_MEMORY_CHAT"

// TestMain makes this test binary three programs: the tests, the example, and the
// plugin that the example starts from its own binary.
func TestMain(m *testing.M) {
	builtin.Main(shipped()...)
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// runs are runs of the example whose outputs are compared. A memory has one number in
// all of them.
type runs struct {
	ids map[string]string
}

// run runs the example and returns what it prints, with a number for each id, in the
// order in which they occur.
func (r *runs) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), runMain+"=1", "OPENAI_API_KEY=not-a-key")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return r.number(string(out)) + stderr.String(), err
}

// id is that of a memory, or a confirmation, which is made of such ids.
var id = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b|\bforget-[a-z2-7]{16}\b`)

func (r *runs) number(s string) string {
	return id.ReplaceAllStringFunc(s, func(id string) string {
		if r.ids == nil {
			r.ids = map[string]string{}
		}
		if r.ids[id] == "" {
			r.ids[id] = fmt.Sprintf("#%d", len(r.ids)+1)
		}
		return r.ids[id]
	})
}

// compare compares what a run printed with a file of testdata.
func compare(t *testing.T, name, got string, err error) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update && err == nil {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, failed := os.ReadFile(name)
	if failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff(got, string(want)); err != nil || diff != "" {
		t.Fatalf("%s: error %v, output (-got +want):\n%s", name, err, diff)
	}
}

// TestTwice holds the same talks twice over one folder. What the second run knows at
// its beginning, it knows from the first, and what was forgotten stays so. What was
// forgotten, refused or not to be kept is in none of the files.
func TestTwice(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	var r runs
	for _, name := range []string{"first.txt", "second.txt"} {
		got, err := r.run(t, "--data", dir)
		compare(t, name, got, err)
		lookFor(t, dir, "live in Porto", true)
		for _, gone := range []string{"tabs", "hunter2", "peanuts"} {
			lookFor(t, dir, gone, false)
		}
	}
}

// lookFor looks for a text in the files of a folder.
func lookFor(t *testing.T, dir, text string, want bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("files %q, error %v", names, err)
	}
	found := false
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, []byte(text))
	}
	if found != want {
		t.Errorf("%q is in %q: %v, want %v", text, names, found, want)
	}
}

// TestNothingStays: without a folder, each run begins with nothing.
func TestNothingStays(t *testing.T) {
	t.Parallel()

	for range 2 {
		var r runs
		got, err := r.run(t)
		compare(t, "first.txt", got, err)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()

	for want, args := range map[string][]string{
		"base URL is not an http or https URL": {"--model", "house"},
		`takes no arguments, and "hello"`:      {"hello"},
		"flag provided but not defined: -":     {"--nothing"},
	} {
		var r runs
		out, err := r.run(t, args...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: error %v, want %q in\n%s", args, err, want, out)
		}
	}
}
