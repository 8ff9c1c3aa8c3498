package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Pin returns the text of a configuration file with checksums written into it: sums are SHA-256 in hex by the names
// of plugins with a command. Only the values of sha256 change, or a line is added below command. A file that cannot
// be read, a plugin that is not in it or has no command, and a layout that cannot be edited safely are errors.
func Pin(data []byte, sums map[string]string) ([]byte, error) {
	const bom = "\uFEFF"
	text, marked := strings.CutPrefix(string(data), bom)
	crlf := strings.Contains(text, "\r\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		var err error
		if text, err = pinOne(text, name, strings.ToLower(sums[name])); err != nil {
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

// pinOne writes one checksum. It reads the edited file again to check that nothing else has changed.
func pinOne(text, name, sum string) (string, error) {
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
	want := bareTree(root, name)
	for _, edited := range pinEdits(strings.Split(text, "\n"), n, `sha256: "`+sum+`"`) {
		again, err := readTree(edited)
		if err != nil {
			continue
		}
		at := findPlugin(again, name)
		if at.child("sha256") != nil && at.child("sha256").text == sum && bytes.Equal(bareTree(again, name), want) {
			return edited, nil
		}
	}
	return "", fmt.Errorf("plugin %q is written in a way that cannot be edited safely; add by hand: sha256: %q", name, sum)
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

// bareTree is everything in the file but one plugin's checksum.
func bareTree(root *node, name string) []byte {
	n := findPlugin(root, name)
	if n == nil {
		return nil
	}
	kept := n.entries
	n.entries = slices.DeleteFunc(slices.Clone(kept), func(e entry) bool { return e.key == "sha256" })
	defer func() { n.entries = kept }()
	return encode(root, plainText)
}

func pinEdits(lines []string, n *node, line string) []string {
	if old := n.child("sha256"); old != nil {
		return []string{
			splice(lines, old.keyLine, old.keyColumn, func(rest string) string { return line + afterValue(rest) }),
		}
	}
	command := n.child("command")
	indent := strings.Repeat(" ", max(0, command.keyColumn-1))
	below := slices.Insert(slices.Clone(lines), min(command.keyLine, len(lines)), indent+line)
	return []string{
		strings.Join(below, "\n"),
		splice(lines, command.keyLine, command.keyColumn, func(rest string) string { return line + "\n" + indent + rest }),
		splice(lines, command.keyLine, command.keyColumn, func(rest string) string { return line + ", " + rest }),
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
