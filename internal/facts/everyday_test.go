package facts_test

import (
	"encoding/json"
	"flag"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/facts"
	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "write the facts of everyday calls")

// compact is facts in one line, with names as they are in the project.
func compact(f *phases.Facts, dir string) string {
	var programs []string
	for _, c := range f.Commands {
		programs = append(programs, strings.Join(append([]string{c.Program}, c.Options...), " "))
	}
	var b strings.Builder
	for _, l := range []struct {
		name string
		list []string
	}{{"run", programs}, {"read", f.Reads}, {"write", f.Writes}, {"name", f.Names}, {"host", f.Hosts}, {"outside", f.Outside}, {"secret", f.Secrets}} {
		if len(l.list) > 0 {
			b.WriteString("; " + l.name + ": " + strings.Join(l.list, ", "))
		}
	}
	if f.Unparsed {
		b.WriteString("; unparsed: " + f.Why)
	}
	return strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll(b.String(), dir+"/", ""), dir, "."), "; ")
}

// TestEveryday has what agents call all day, each followed by its facts: no secrets, and nothing that is not understood.
func TestEveryday(t *testing.T) {
	t.Parallel()
	dir := project(t)
	const file = "testdata/everyday.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var now strings.Builder
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		now.WriteString(line)
		tool, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || tool == "#" {
			continue
		}
		args := json.RawMessage(text)
		if tool == "Bash" {
			args = bash(t, text)
		}
		f := facts.Of(tool, args, nil, dir, "/home/u")
		if f.Unparsed || len(f.Secrets) > 0 {
			t.Errorf("%s: %s", line, compact(f, dir))
		}
		now.WriteString("\t" + compact(f, dir) + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(now.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if now.String() != string(data) {
		t.Errorf("the facts are others:\n%s", now.String())
	}
}

// FuzzOf reads whatever a model may write as a command.
func FuzzOf(f *testing.F) {
	f.Add("cat .env", "Bash")
	f.Add("cd sub && cat ../.e*[x] <<E | xargs -I{} sh -c '{}'\nE", "shell")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, command, tool string) {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		got := facts.Of(tool, args, nil, dir, "/home/u")
		files := len(got.Reads) + len(got.Writes) + len(got.Names)
		if files > 300 || len(got.Outside) > files || len(got.Secrets) > files+1 || len(got.Hosts) > 300 || len(got.Commands) > 1000 {
			t.Errorf("%d files, %d outside, %d secrets, %d hosts, %d commands", files, len(got.Outside), len(got.Secrets), len(got.Hosts), len(got.Commands))
		}
		text := 0
		for _, c := range got.Commands {
			text += len(strings.Join(c.Words, ""))
		}
		if text > 3*256<<10 || len(got.Why) > 4*200 || got.Unparsed != (got.Why != "") {
			t.Errorf("%d bytes of words; %t %q", text, got.Unparsed, got.Why)
		}
		for _, host := range got.Hosts {
			if len(host) > 255 || host == "" {
				t.Errorf("%q", host)
			}
		}
		for _, list := range [][]string{got.Reads, got.Writes, got.Names, got.Outside, got.Secrets} {
			for _, name := range list {
				if !path.IsAbs(name) || path.Clean(name) != name {
					t.Errorf("%q", name)
				}
			}
		}
	})
}
