package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPin(t *testing.T) {
	t.Parallel()

	sum := strings.Repeat("0123456789abcdef", 4)
	pin := `sha256: "` + sum + `"`
	const head = "version: 1 # the schema\nplugins:\n"
	tests := []struct {
		name       string
		file, want string
	}{
		{"below the command", "  - name: a # why\n    command: ./a # where\n    args: [x]\n", "  - name: a # why\n    command: ./a # where\n    " + pin + "\n    args: [x]\n"},
		{"at the end of a file without a newline", "  - name: a\n    command: ./a", "  - name: a\n    command: ./a\n    " + pin},
		{"command first", "  - command: ./a\n    name: a\n", "  - command: ./a\n    " + pin + "\n    name: a\n"},
		{"list without indentation", "- name: a\n  command: ./a\n", "- name: a\n  command: ./a\n  " + pin + "\n"},
		{"in braces", "  - {name: a, command: ./a} # x\n", "  - {name: a, " + pin + ", command: ./a} # x\n"},
		{"in braces, command first", "  - {command: ./a, name: a}\n", "  - {" + pin + ", command: ./a, name: a}\n"},
		{"in braces over lines", "  - {\n      name: a,\n      command: ./a\n    }\n", "  - {\n      name: a,\n      " + pin + ", command: ./a\n    }\n"},
		{"replaced", "  - name: a\n    sha256: 'ABC' # old\n    command: ./a\n", "  - name: a\n    " + pin + " # old\n    command: ./a\n"},
		{"replaced without quotes", "  - {name: a, sha256: ABC, command: ./a}\n", "  - {name: a, " + pin + ", command: ./a}\n"},
		{"quoted command", "  - name: a\n    command: \"./a #1\"\n", "  - name: a\n    command: \"./a #1\"\n    " + pin + "\n"},
		{"the other plugins stay", "  - {name: b, command: ./a}\n  - name: a\n    command: ./a\n", "  - {name: b, command: ./a}\n  - name: a\n    command: ./a\n    " + pin + "\n"},
		{"Windows lines", "  - name: a\r\n    command: ./a\r\n", "  - name: a\r\n    command: ./a\r\n    " + pin + "\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			top := head
			if strings.Contains(tt.file, "\r\n") {
				top = strings.ReplaceAll(head, "\n", "\r\n")
			}
			got, err := Pin([]byte(top+tt.file), map[string]Sums{"a": {Program: strings.ToUpper(sum)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(got), top+tt.want); diff != "" {
				t.Errorf("file (-got +want):\n%s", diff)
			}
			c, err := Parse(got, "grapnel.yaml")
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Plugins {
				if want := map[bool]string{true: sum}[c.Plugins[i].Name == "a"]; c.Plugins[i].SHA256 != want {
					t.Errorf("plugin %s has the checksum %q, want %q", c.Plugins[i].Name, c.Plugins[i].SHA256, want)
				}
			}
		})
	}
}

// TestPinFiles: checksums of files go into pins, in the order of their paths, and nothing else changes.
func TestPinFiles(t *testing.T) {
	t.Parallel()

	const head, x, y = "version: 1\nplugins:\n", `"/x": "aa"`, `"/y: z": "bb"`
	for name, tt := range map[string]struct{ file, want string }{
		"none yet":          {"  - name: a\n    command: ./a # where\n    args: [x]\n", "  - name: a\n    command: ./a # where\n    pins:\n      " + x + "\n      " + y + "\n    args: [x]\n"},
		"in braces":         {"  - {name: a, command: ./a} # x\n", "  - {name: a, pins: {" + x + ", " + y + "}, command: ./a} # x\n"},
		"others":            {"  - name: a\n    pins:\n      # old\n      /w: \"cc\" # w\n    command: ./a\n", "  - name: a\n    pins:\n      # old\n      " + x + "\n      " + y + "\n      /w: \"cc\" # w\n    command: ./a\n"},
		"others, in braces": {"  - name: a\n    command: ./a\n    pins: {/w: \"cc\"}\n", "  - name: a\n    command: ./a\n    pins: {" + x + ", " + y + ", /w: \"cc\"}\n"},
		"old ones":          {"  - name: a\n    command: ./a\n    pins:\n      '/y: z': '11' # y\n      /x: \"22\"\n", "  - name: a\n    command: ./a\n    pins:\n      " + y + " # y\n      " + x + "\n"},
		"of another plugin": {"  - {name: b, command: ./b, pins: {/x: \"22\"}}\n  - {name: a, command: ./a, pins: {" + x + "}}\n", "  - {name: b, command: ./b, pins: {/x: \"22\"}}\n  - {name: a, command: ./a, pins: {" + y + ", " + x + "}}\n"},
	} {
		got, err := Pin([]byte(head+tt.file), map[string]Sums{"a": {Files: map[string]string{"/x": "aa", "/y: z": "BB"}}})
		if diff := cmp.Diff(head+tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	_, err := Pin([]byte(head+"  - {name: a, command: ./a, pins: {}}\n"), map[string]Sums{"a": {Files: map[string]string{"/x": "aa"}}})
	if err == nil || !strings.Contains(err.Error(), `add by hand: pins: {"/x": "aa"}`) {
		t.Errorf("empty braces: %v", err)
	}
}

func TestPinRefuses(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, file, want string
		located          bool
	}{
		{"no such plugin", "version: 1\n", `there is no plugin "a"`, false},
		{"nothing to pin", "version: 1\nplugins: [{name: a, builtin: b}]\n", "has no command", false},
		{"no YAML", "version: [\n", "not found", true},
		{"empty", "", "empty", false},
		{"complex key", "version: 1\nplugins:\n  - name: a\n    ? command\n    : ./a\n", "complex keys", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := Pin([]byte(tt.file), map[string]Sums{"a": {Program: "ab"}})
			if err == nil {
				t.Fatalf("no error, but the file\n%s", got)
			}
			if _, located := errors.AsType[Errors](err); located != tt.located || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want it to say %q, with a place: %v", err, tt.want, tt.located)
			}
		})
	}
}

// FuzzPin asserts that writing a checksum changes nothing else, and that writing
// it again changes nothing.
func FuzzPin(f *testing.F) {
	f.Add("version: 1\nplugins:\n  - name: a\n    command: ./a\n")
	f.Add("\uFEFFplugins: [{name: a, command: x, sha256: }]")
	f.Add("plugins:\n- command: |\n    x\n  name: a\n  # end\n")
	f.Add("plugins:\n- command: x\n  name: a\n  pins: {/x: a}\n")
	f.Fuzz(func(t *testing.T, file string) {
		sums := map[string]Sums{"a": {Program: strings.Repeat("0f", 32), Files: map[string]string{"/x": "ab", "/y": "cd"}}}
		once, err := Pin([]byte(file), sums)
		if err != nil {
			return
		}
		if strings.HasPrefix(string(once), "\uFEFF") != strings.HasPrefix(file, "\uFEFF") {
			t.Errorf("the byte order mark of %q is not that of %q", once, file)
		}
		before, errBefore := readTree(strings.TrimPrefix(normalLines(file), "\uFEFF"))
		after, errAfter := readTree(strings.TrimPrefix(normalLines(string(once)), "\uFEFF"))
		if errBefore != nil || errAfter != nil {
			t.Fatalf("before: %v, after: %v", errBefore, errAfter)
		}
		if diff := cmp.Diff(unpinned(after), unpinned(before)); diff != "" {
			t.Errorf("something else changed (-got +want):\n%s", diff)
		}
		twice, err := Pin(once, sums)
		if err != nil || string(twice) != string(once) {
			t.Errorf("a second time: %v\n%q\n%q", err, once, twice)
		}
	})
}

// unpinned is a file without what FuzzPin writes.
func unpinned(root *node) string {
	n := findPlugin(root, "a")
	for _, file := range []string{"/x", "/y"} {
		if pins := n.child("pins"); pins != nil {
			pins.entries = slices.DeleteFunc(pins.entries, func(e entry) bool { return e.key == file })
		}
	}
	n.entries = slices.DeleteFunc(n.entries, func(e entry) bool { return e.key == "pins" && len(e.value.entries) == 0 })
	return string(bareTree(root, "a", ""))
}

func normalLines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
