package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the commands into docs/CLI.md")

// TestReferenceIsFresh: docs/CLI.md has every command with its flags.
func TestReferenceIsFresh(t *testing.T) {
	const name, begin, end = "../../docs/CLI.md", "<!-- commands: go test ./cmd/grapnel -run Reference -update -->\n", "<!-- end -->"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the commands", name)
	}
	a := &app{}
	root := a.root()
	for _, add := range a.flags {
		add()
	}
	want := before + begin + reference(root) + end + after
	switch {
	case want == string(data):
	case *update:
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: go test ./cmd/grapnel -run Reference -update", name)
	}
}

// reference lists commands with their flags, those first that many commands have.
func reference(root *cobra.Command) string {
	var b strings.Builder
	generated := func(c *cobra.Command) bool { return c.Name() == "completion" || c.Name() == "help" }
	uses := map[string]int{}
	var count func(c *cobra.Command)
	count = func(c *cobra.Command) {
		eachFlag(c, func(f *pflag.Flag) { uses[flagText(f)]++ })
		for _, sub := range c.Commands() {
			if !generated(sub) {
				count(sub)
			}
		}
	}
	count(root)
	b.WriteString("\nFlags of three commands and more:\n\n| flag | meaning |\n|---|---|\n")
	for _, text := range slices.Sorted(func(yield func(string) bool) {
		for text, n := range uses {
			if n > 2 && !yield(text) {
				return
			}
		}
	}) {
		head, meaning, _ := strings.Cut(text, ": ")
		fmt.Fprintf(&b, "| %s | %s |\n", head, meaning)
	}
	for _, c := range root.Commands() {
		if generated(c) {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| command | what it does | flags |\n|---|---|---|\n", c.Name())
		for _, sub := range append(c.Commands(), c) {
			if sub == c && c.HasSubCommands() {
				break
			}
			var flags []string
			eachFlag(sub, func(f *pflag.Flag) {
				text := flagText(f)
				if uses[text] > 2 {
					text, _, _ = strings.Cut(text, ": ")
				}
				flags = append(flags, text)
			})
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(sub.CommandPath()+strings.TrimPrefix(sub.Use, sub.Name()), "|", `\|`), sub.Short, strings.Join(flags, "<br>"))
		}
	}
	return b.String()
}

func eachFlag(c *cobra.Command, do func(*pflag.Flag)) {
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if c.HasParent() && f.Name != "help" {
			do(f)
		}
	})
}

func flagText(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	text := "`" + strings.TrimSpace("--"+f.Name+" "+value) + "`: " + usage
	if f.DefValue != "" && !strings.Contains(usage, "(default") {
		text += " (default " + f.DefValue + ")"
	}
	return strings.ReplaceAll(text, "|", `\|`)
}
