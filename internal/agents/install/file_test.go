package install

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// files look like those that people have. Another tool's hooks, and what the tool does not know, stay.
var files = map[string]string{
	"missing":         "",
	"an empty object": "{}\n",
	"other settings":  "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\"]\n  }\n}\n",
	"other hooks": `{
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": "~/bin/guard.py"}]
            }
        ],
        "Notification": [{"hooks": [{"type": "command", "command": "say done"}]}]
    },
    "future": {"é": [1, 2.50, 1e3, "\u00e9"]}
}`,
	"tabs, no end":    "{\n\t\"a\": 1,\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}\n\t\t]\n\t}\n}",
	"odd indentation": "{\n   \"a\":1 ,\n \"hooks\" : {\n       \"PreToolUse\" : [ ]\n   }   \n  }\n\n",
	"Windows":         "{\r\n  \"a\": 1,\r\n  \"hooks\": {\r\n    \"PreToolUse\": [\r\n      {\"hooks\": []}\r\n    ]\r\n  }\r\n}\r\n",
	"one line":        `{"a":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x"}]}]}}`,
	"comments":        "// mine\n{\n  // the model\n  \"model\": \"x\", // good\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}, // first\n      // last\n    ], /* done */\n  },\n  // end\n}\n",
	"a mark":          byteOrderMark + "{\n  \"a\": 1\n}\n",
	"a wrapper":       "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"env X=1 grapnel-hook codex\"}, {\"type\": \"prompt\", \"prompt\": 7, \"command\": 7}]}\n    ]\n  }\n}\n",
}

var command = &agent.Command{Program: "/repo/it's me/bin/grapnel-hook"}

func parse(t *testing.T, h *Host, text string) *File {
	t.Helper()
	f, err := h.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLayout: entries look as the file around them.
func TestLayout(t *testing.T) {
	t.Parallel()

	const entry = `{"hooks":[{"type":"command","command":"/g/grapnel-hook","args":["claude-code","PreToolUse"],"onFailure":"block"}]}`
	h := Lookup("claude-code")
	for name, want := range map[string]string{
		"one line": strings.TrimSuffix(files["one line"], "]}}") + ", " + entry + "]}}",
		"comments": strings.Replace(files["comments"], "      // last\n", "      // last\n      "+indented(t, entry, "      ")+",\n", 1),
	} {
		f := parse(t, h, files[name])
		if err := f.Add(&Wanted{Entries: h.Entries(&agent.Command{Program: "/g/grapnel-hook"}, []string{"PreToolUse"})}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(f.Bytes())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func indented(t *testing.T, text, prefix string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), prefix, "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRefused: a file that cannot be read is refused with its place.
func TestRefused(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"{\n  \"a\": 1\n  \"b\": 2\n}":           "line 3, column 3",
		"{\"a\": ":                               "unexpected EOF",
		"[]":                                     "it is not an object",
		"{\n\"hooks\": {}, // x\n\"hooks\": {}}": `line 3: the name "hooks" is there twice, first in line 2`,
		"{\n\"mcpServers\": {\"a\": {},\n\"\\u0061\": {}}}": `line 3: the name "a" is there twice, first in line 2`,
		"{\n\"hooks\": []}":                                 "line 2: hooks is not an object",
		"{\n\"hooks\": {\n\"PreToolUse\": {}}}":             "line 3: hooks.PreToolUse is not a list",
		"{\"hooks\": null}":                                 "hooks is not an object",
		"{\"hooks\": {\"Unknown\": 7, \"PreToolUse\": []}}": "",
	} {
		_, err := Lookup("claude-code").Parse([]byte(text))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzEdit: what is added to a file is found again, and what is removed leaves the same values.
func FuzzEdit(f *testing.F) {
	for _, text := range files {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := Lookup("claude-code")
		file, err := h.Parse([]byte(text))
		if err != nil || len(file.Ours()) > 0 {
			return
		}
		_, again := addTo(t, h, text)
		if removed := again.Remove(); !removed || again.Remove() || len(again.Ours()) > 0 {
			t.Fatalf("%t:\n%s", removed, again.Bytes())
		}
		parse(t, h, string(again.Bytes()))
	})
}

// addTo adds entries to a file, which are found again.
func addTo(t *testing.T, h *Host, text string) (added []byte, again *File) {
	t.Helper()
	wanted := &Wanted{Entries: h.Entries(command, []string{"SessionStart", "PreToolUse", "Stop"})}
	f := parse(t, h, text)
	if f.Has(wanted) || len(f.Ours()) > 0 {
		t.Fatalf("%s: it has entries already:\n%s", h.Name, text)
	}
	if err := f.Add(wanted); err != nil {
		t.Fatal(err)
	}
	if added, again = f.Bytes(), parse(t, h, string(f.Bytes())); !again.Has(wanted) || len(again.Ours()) != 3 {
		t.Fatalf("%s: the entries are not found:\n%s", h.Name, added)
	}
	return added, again
}
