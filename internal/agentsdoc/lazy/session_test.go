package lazy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// TestSessions runs each case of testdata/sessions.txt on each view.
func TestSessions(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/sessions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(data), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n")+"\n", "\n")
		head, rest, _ := strings.Cut(rest, "\ndir: ")
		dir, rest, _ := strings.Cut(rest, "\noptions: ")
		options, script, _ := strings.Cut(rest, "\n")
		tree := files{}
		for line := range strings.Lines(head) {
			name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			tree[name] = unquoted(text)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for view, fs := range views() {
				if diff := cmp.Diff(play(t, fs, tree, dir, optionsOf(t, options), script), script); diff != "" {
					t.Errorf("%s (-got +want):\n%s", view, diff)
				}
			}
		})
	}
}

// play runs the events of a session, and is the script with what was answered.
func play(t *testing.T, view chain.FS, tree files, dir string, o chain.Options, script string) string {
	t.Helper()
	base := build(t, tree)
	s := begin(base, dir, o)
	var out strings.Builder
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, ">") {
			continue
		}
		out.WriteString(line)
		event, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, text, _ := strings.Cut(rest, " ")
		var got Touched
		switch event {
		case "write":
			put(t, base, name, unquoted(text))
		case "rm":
			remove(t, base, name)
		case "age":
			if err := os.Chtimes(filepath.Join(base, name), time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
				t.Fatal(err)
			}
		case "epoch":
			s.NewEpoch(s.Epoch + 1)
		case "touch":
			got = s.Touch(view, o, strings.Fields(strings.ReplaceAll(rest, "BASE", base)))
		case "changed":
			c := s.Changed(chain.Resolve(view, filepath.Join(base, filepath.FromSlash(dir)), o))
			got = Touched{Files: c.Files, Pending: c.Pending, Diagnostics: c.Diagnostics, Reminder: c.Reminder}
		case "resume":
			dir, o = name, optionsOf(t, text)
			out.WriteString(resume(t, &s, chain.Resolve(view, filepath.Join(base, filepath.FromSlash(dir)), o), base))
		default:
			t.Fatalf("no event: %q", line)
		}
		if said := got.Reminder != ""; said != (len(got.Files) > 0 && o.Resolver.Delivery != chain.DeliverOff) {
			t.Errorf("%s: %d files and the reminder %q", line, len(got.Files), got.Reminder)
		}
		for row := range strings.Lines(strings.ReplaceAll(outline(got, base), base, "BASE")) {
			out.WriteString("> " + row)
		}
		s = again(t, s)
	}
	return out.String()
}

// resume resumes a session, and prints what has changed and what the model is told.
func resume(t *testing.T, s *State, now chain.Chain, base string) string {
	t.Helper()
	got := s.Resume(now)
	if got.Changed != (len(got.Changes) > 0) || got.Root != now.Root {
		t.Errorf("changed %t, root %s", got.Changed, got.Root)
	}
	if again := s.Resume(now); again.Changed {
		t.Errorf("the second time:\n%s", resumed(again, base))
	}
	var out strings.Builder
	for row := range strings.Lines(resumed(got, base)) {
		out.WriteString("> " + strings.ReplaceAll(row, base, "BASE"))
	}
	for row := range strings.Lines(got.Reminder) {
		out.WriteString(">| " + mtimes.ReplaceAllString(strings.ReplaceAll(strings.TrimSuffix(row, "\n"), base, "BASE"), "mtime: N") + "\n")
	}
	return out.String()
}

// resumed prints the rows of an answer.
func resumed(got Resumed, base string) string {
	var out strings.Builder
	for _, c := range got.Changes {
		fmt.Fprintf(&out, "%s %t", c.What, c.Named)
		if c.Path != "" {
			fmt.Fprintf(&out, " %s %t %t", short(c.Path, base), c.From != "", c.To != "")
		} else {
			fmt.Fprintf(&out, " %s -> %s", short(c.From, base), short(c.To, base))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

var mtimes = regexp.MustCompile(`mtime: \d+`)

// optionsOf are the options of a case.
func optionsOf(t *testing.T, text string) chain.Options {
	t.Helper()
	o := chain.Default()
	for range 2 { // the first time for the preset
		o = preset(t, o.Preset)
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// unquoted is a text that may be a Go string.
func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// again is the state as another process has it.
func again(t *testing.T, s State) State {
	t.Helper()
	data, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, s); diff != "" {
		t.Errorf("the state came back otherwise (-got +want):\n%s", diff)
	}
	return got
}
