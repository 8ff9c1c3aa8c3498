package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sums are checksums of a plugin's files: SHA-256 in hex.
type Sums struct {
	Program string            // empty leaves sha256 as it is
	Files   map[string]string // for pins, by absolute path
}

// Pin returns the text of a configuration file with checksums written into it, by the names of plugins with a command.
// Only the values of sha256 and pins change, or lines are added: below command, or within pins. A file that cannot
// be read, a plugin that is not in it or has no command, and a layout that cannot be edited safely are errors.
func Pin(data []byte, sums map[string]Sums) ([]byte, error) {
	const bom = "\uFEFF"
	text, marked := strings.CutPrefix(string(data), bom)
	crlf := strings.Contains(text, "\r\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		var err error
		if text, err = pinAll(text, name, sums[name]); err != nil {
			return nil, err
		}
	}
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if marked {
		text = bom + text
	}
	return []byte(text), nil
}

// pinAll writes the checksums of one plugin, each line above the one before.
func pinAll(text, name string, sums Sums) (_ string, err error) {
	for _, file := range slices.Backward(slices.Sorted(maps.Keys(sums.Files))) {
		if text, err = pinOne(text, name, file, strings.ToLower(sums.Files[file])); err != nil {
			return "", err
		}
	}
	if sums.Program == "" {
		return text, nil
	}
	return pinOne(text, name, "", strings.ToLower(sums.Program))
}

// pinOne writes one checksum: of a file, or of the program if that is empty. It reads the edited text again to check
// that nothing else has changed.
func pinOne(text, name, file, sum string) (string, error) {
	root, err := readTree(text)
	if err != nil {
		return "", err
	}
	n := findPlugin(root, name)
	switch {
	case n == nil:
		return "", fmt.Errorf("there is no plugin %q in the file", name)
	case n.child("command") == nil:
		return "", fmt.Errorf("plugin %q has no command: there is nothing to pin", name)
	}
	if at := pinnedAt(n, file); at != nil && at.text == sum {
		return text, nil
	}
	want := bareTree(root, name, file)
	edits, pair := programEdits, fmt.Sprintf("sha256: %q", sum)
	if file != "" {
		edits, pair = fileEdits, fmt.Sprintf("%q: %q", file, sum)
	}
	for _, edited := range edits(strings.Split(text, "\n"), n, file, pair) {
		again, err := readTree(edited)
		if err != nil {
			continue
		}
		if at := pinnedAt(findPlugin(again, name), file); at != nil && at.text == sum && bytes.Equal(bareTree(again, name, file), want) {
			return edited, nil
		}
	}
	if file != "" {
		pair = "pins: {" + pair + "}"
	}
	return "", fmt.Errorf("plugin %q is written in a way that cannot be edited safely; add by hand: %s", name, pair)
}

// pinnedAt is where the checksum of a file, or of the program, stands; nil if it does not.
func pinnedAt(plugin *node, file string) *node {
	if file == "" {
		return plugin.child("sha256")
	}
	return plugin.child("pins").child(file)
}

func readTree(text string) (*node, error) {
	r := newReport("", text)
	root := parseYAML(text, r)
	if err := r.err(); err != nil {
		return nil, err
	}
	if root == nil {
		return nil, errors.New("the file is empty")
	}
	return root, nil
}

// bareTree is everything in the file but one checksum of one plugin.
func bareTree(root *node, name, file string) []byte {
	n := findPlugin(root, name)
	if n == nil {
		return nil
	}
	kept := n.entries
	defer func() { n.entries = kept }()
	n.entries = nil
	for _, e := range kept {
		if file == "" && e.key == "sha256" {
			continue
		}
		if file != "" && e.key == "pins" {
			if e.value = e.value.without(file); len(e.value.entries) == 0 {
				continue
			}
		}
		n.entries = append(n.entries, e)
	}
	return encode(root, plainText)
}

// without is a mapping without one of its keys.
func (n *node) without(key string) *node {
	bare := *n
	bare.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool { return e.key == key })
	return &bare
}

// programEdits are the texts that may be the file with the program's checksum; the first that is, is taken.
func programEdits(lines []string, n *node, _, pair string) []string {
	if old := n.child("sha256"); old != nil {
		return []string{replacePair(lines, old, pair)}
	}
	return besideCommand(lines, n, pair, pair)
}

// fileEdits are those with a file's checksum in pins.
func fileEdits(lines []string, n *node, file, pair string) []string {
	pins := n.child("pins")
	switch {
	case pins.child(file) != nil:
		return []string{replacePair(lines, pins.child(file), pair)}
	case pins == nil:
		return besideCommand(lines, n, "pins:\n  "+pair, "pins: {"+pair+"}")
	case len(pins.entries) == 0:
		return nil // somebody wrote braces with nothing in them
	}
	first := pins.entries[0]
	return before(lines, first.line, first.column, pair)
}

func replacePair(lines []string, old *node, pair string) string {
	return splice(lines, old.keyLine, old.keyColumn, func(rest string) string { return pair + afterValue(rest) })
}

// besideCommand adds lines below the plugin's command, or a pair before it.
func besideCommand(lines []string, n *node, below, pair string) []string {
	command := n.child("command")
	indent := strings.Repeat(" ", max(0, command.keyColumn-1))
	added := indent + strings.ReplaceAll(below, "\n", "\n"+indent)
	edited := slices.Insert(slices.Clone(lines), min(command.keyLine, len(lines)), added)
	return append([]string{strings.Join(edited, "\n")}, before(lines, command.keyLine, command.keyColumn, pair)...)
}

// before adds a pair before another: in a line of its own, or in the same.
func before(lines []string, line, column int, pair string) []string {
	indent := strings.Repeat(" ", max(0, column-1))
	return []string{
		splice(lines, line, column, func(rest string) string { return pair + "\n" + indent + rest }),
		splice(lines, line, column, func(rest string) string { return pair + ", " + rest }),
	}
}

func splice(lines []string, line, column int, replace func(rest string) string) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	at := []rune(lines[line-1])
	column = min(max(column, 1), len(at)+1)
	edited := slices.Clone(lines)
	edited[line-1] = string(at[:column-1]) + replace(string(at[column-1:]))
	return strings.Join(edited, "\n")
}

// afterValue returns what follows the first pair of a text such as `sha256: "…" # why`.
func afterValue(pair string) string {
	if pair != "" && (pair[0] == '"' || pair[0] == '\'') { // a path may have a colon
		_, pair, _ = strings.Cut(pair[1:], pair[:1])
	}
	_, value, _ := strings.Cut(pair, ":")
	value = strings.TrimLeft(value, " ")
	if value != "" && (value[0] == '"' || value[0] == '\'') {
		if _, rest, ok := strings.Cut(value[1:], value[:1]); ok {
			return rest
		}
	}
	if i := strings.IndexAny(value, " ,}"); i >= 0 {
		return value[i:]
	}
	return ""
}
