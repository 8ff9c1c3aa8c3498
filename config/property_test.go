package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// TestEveryValueOfAnotherKind puts a list of mappings in the place of each
// scalar: each must be reported where it stands.
func TestEveryValueOfAnotherKind(t *testing.T) {
	t.Parallel()

	for _, text := range []string{templateInUse(), section11, located} {
		root := parse(t, text).source.root
		lines := strings.Split(text, "\n")
		visit(root, nil, func(path []string, n *node) {
			if own(path) || n.kind != textNode && n.kind != numberNode && n.kind != boolNode || n.line == n.keyLine && n.column == n.keyColumn {
				return
			}
			at := place{n.line, n.column}
			old := scalarAt([]rune(lines[n.line-1])[n.column-1:])
			_, err := Parse([]byte(replaceAt(t, text, at, old, "[{a: b}]")), "f")
			if messages := mistakesAt(err, at); len(messages) != 1 || !strings.Contains(messages[0], "got a list") {
				t.Errorf("%v at %v (%s): got %q in\n%v", path, at, old, messages, err)
			}
		})
	}
}

// scalarAt cuts the scalar off that a text begins with; it is simple because the
// texts of these tests are.
func scalarAt(rest []rune) string {
	text := string(rest)
	if text[0] == '\'' || text[0] == '"' {
		return text[:strings.IndexByte(text[1:], text[0])+2]
	}
	if i := strings.IndexAny(text, ",}]"); i >= 0 {
		text = text[:i]
	}
	text, _, _ = strings.Cut(text, " #")
	return strings.TrimRight(text, " ")
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

// TestAccepted has what could be taken for a mistake.
func TestAccepted(t *testing.T) {
	t.Parallel()

	const plugin = "version: 1\nplugins: [{name: p, "
	tests := []struct{ name, text string }{
		{"no plugins", "version: 1\n"},
		{"in process", "version: 1\nplugins: [{name: p}]"},
		{"document signs", "---\nversion: 1\n...\n"},
		{"comment before the document", "# c\n---\n# d\nversion: 1 # e\n"},
		{"lists without values", "version: 1\nplugins:\nbudgets:\n  phases:\n"},
		{"blank lines and no final newline", "\n\nversion: 1\n\n\nmanifest:\n\n  labels: hash"},
		{"list as deep as its key", "version: 1\nplugins:\n- name: p\n  args:\n  - a\n  command: x\n"},
		{"quoted keys", "\"version\": 1\n'plugins': []\n"},
		{"hexadecimal whole number", "version: 0x1\n"},
		{"stores", "version: 1\nstore: postgresql://u@h/d?sslmode=disable"},
		{"sizes in thousands", plugin + "limits: {memory: 300MB, frame: 16MiB}}]"},
		{"several units", plugin + "limits: {start: 1m30s}}]"},
		{"wildcards", plugin + "grants: {contribute: ['*'], sections: [a/*, 'b*'], policies: ['*', d/*, d/k], host: [state], read: [/, /tmp/*], net: ['*', '*:443', 'listen:1'], see: [user_text, '*']}}]"},
		{"all kinds by prefix", plugin + "grants: {contribute: ['prompt_*', 'manifest*']}}]"},
		{"no retry", plugin + "subscriptions: {p.h: {retry: {attempts: 0}, cache: {ttl: 0s}, kinds: [], fallback: []}}}]"},
		{"hook names", plugin + "subscriptions: {p.a/b: {}, p.a.b: {}, 'p.a:b-c': }}]"},
		{"soft dependency", plugin + "subscriptions: {p.h: {after: ['q.x?', q.y]}}}]"},
		{"fail closed of a built-in plugin", plugin + "builtin: b, subscriptions: {p.h: {on_failure: fail_closed}}}]"},
		{"fail closed with a phase", plugin + "command: c, subscriptions: {p.h: {on_failure: {default: fail_closed}, phase: tool.pre_call}}}]"},
		{"phases of a host", "version: 1\nbudgets: {phases: {x.host.own: {time: 1s}, turn.post_turn: {require: [p.h]}}}\nplugins: [{name: p}]"},
		{"checksum required and there", "version: 1\npin: required\nplugins: [{name: p, command: c, sha256: " + strings.Repeat("ab", 32) + "}]"},
		{"sixty levels less the file's own", plugin + "config: {a: " + strings.Repeat("[", 31) + strings.Repeat("]", 31) + "}}]"},
		{"emoji", plugin + "config: {face: \"\U0001F600\", escaped: \"\\U0001F600\"}}]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			parse(t, tt.text)
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
