package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// place is a place in a text, for messages of tests.
type place struct{ line, column int }

// replaceAt replaces the first occurrence of old at or behind a place.
func replaceAt(t *testing.T, text string, at place, old, replacement string) string {
	t.Helper()

	lines := strings.Split(text, "\n")
	line := []rune(lines[at.line-1])
	head, tail := string(line[:at.column-1]), string(line[at.column-1:])
	if !strings.HasPrefix(tail, old) {
		t.Fatalf("%d:%d is %q, want %q there", at.line, at.column, tail, old)
	}
	lines[at.line-1] = head + replacement + strings.TrimPrefix(tail, old)
	return strings.Join(lines, "\n")
}

// mistakesAt returns the messages of an error at a place.
func mistakesAt(err error, at place) []string {
	var messages []string
	all, _ := errors.AsType[Errors](err)
	for _, e := range all {
		if e.Line == at.line && e.Column == at.column {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// visit calls f for each value below n with the path to it.
func visit(n *node, path []string, f func(path []string, n *node)) {
	f(path, n)
	for i, item := range n.items {
		visit(item, append(slices.Clone(path), strconv.Itoa(i)), f)
	}
	for _, e := range n.entries {
		visit(e.value, append(slices.Clone(path), e.key), f)
	}
}

// own reports whether a path is in free-form data, where no key is wrong.
func own(path []string) bool {
	return len(path) > 2 && path[0] == "plugins" && path[2] == "config" || slices.Contains(path, "set") || slices.Contains(path, "pins")
}

// TestEveryKeyMistyped misspells one key after the other in a file that has them
// all: each must be reported where it stands.
func TestEveryKeyMistyped(t *testing.T) {
	t.Parallel()

	for _, text := range []string{templateInUse(), section11, located} {
		root := parse(t, text).source.root
		visit(root, nil, func(path []string, n *node) {
			if len(path) == 0 || n.keyLine == 0 || own(path) {
				return
			}
			key, at := path[len(path)-1], place{n.keyLine, n.keyColumn}
			broken := replaceAt(t, text, at, key, key+"zzz")
			_, err := Parse([]byte(broken), "f")
			messages := mistakesAt(err, at)
			// The ids of subscriptions and workspaces are the operator's own words; without a
			// kind nothing is known of the other keys.
			if len(path) == 4 && (path[2] == "subscriptions" || path[2] == "workspaces") || key == "kind" {
				return
			}
			if len(messages) != 1 || !strings.Contains(messages[0], key+"zzz") {
				t.Errorf("%v misspelt at %v: got %q in\n%v", path, at, messages, err)
			}
		})
	}
}

// TestPositionsAgree: PlanError points to the place of every value.
func TestPositionsAgree(t *testing.T) {
	t.Parallel()

	c := parse(t, templateInUse())
	count := 0
	visit(c.source.root, nil, func(path []string, n *node) {
		if len(path) == 0 || slices.Contains(path, "pins") {
			return // the file as a whole, and keys with dots in them that others begin with
		}
		count++
		line, column := n.place()
		e, isError := errors.AsType[*Error](c.PlanError("", strings.Join(path, "."), "bad", nil))
		if !isError || e.Message != "bad" || e.Line != line || e.Column != column {
			t.Errorf("%v is at %d:%d, and PlanError says %v", path, line, column, e)
		}
	})
	if count < 90 {
		t.Errorf("only %d values", count)
	}
}

// TestAccepted reads testdata/accepted.txtar: what could be taken for a mistake.
func TestAccepted(t *testing.T) {
	t.Parallel()

	archive, err := txtar.ParseFile("testdata/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()

			parse(t, string(f.Data))
		})
	}
}

func TestNormalised(t *testing.T) {
	t.Parallel()

	upper, lower := strings.Repeat("AB", 32), strings.Repeat("ab", 32)
	c := parse(t, `version: 1
plugins:
  - name: p
    command: /bin/x/../y
    sha256: `+upper+`
    pins: {/bin/sh: `+upper+`}
    grants: {see: [], tools: }
    env: {set: {}}
    subscriptions:
      p.h: {kinds: [], after: [], fallback: []}
      p.i: {}
`)
	p := c.Plugins[0]
	if p.SHA256 != lower || p.Pins["/bin/sh"] != lower {
		t.Errorf("checksums: got %s and %v", p.SHA256, p.Pins)
	}
	if p.Path != "/bin/y" || p.Command != "/bin/x/../y" {
		t.Errorf("command: got %s at %s", p.Command, p.Path)
	}
	if p.Grants.See != nil || p.Grants.Tools != nil || p.Env.Set != nil || p.Config != nil {
		t.Errorf("what is empty is not as if absent: %#v", p.Grants)
	}
	// In an override "none" differs from "as proposed".
	h, i := p.Subscriptions["p.h"], p.Subscriptions["p.i"]
	if h.Kinds == nil || h.After == nil || *h.After == nil || h.Fallback == nil {
		t.Errorf("empty lists are absent: %+v", h)
	}
	if i.Kinds != nil || i.After != nil || i.Fallback != nil {
		t.Errorf("absent lists are there: %+v", i)
	}
}
