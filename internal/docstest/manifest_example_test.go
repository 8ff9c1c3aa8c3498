package docstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// exampleSoul is the SOUL.md of the example's first round; the assistant adds
// exampleLesson before the second.
const (
	exampleSoul   = "I am calm, exact and on the customer's side.\n"
	exampleLesson = "I look a ticket up before I talk about it.\n"
)

// exampleManifest runs the turn that docs/MANIFEST.md takes apart: two rounds with
// the provider, between which the model calls a tool that it was not offered, and
// edits its SOUL.md. It returns the record of the second.
//
// Clock and ids are pinned. Measured times are replaced, and both records sealed
// anew: the hashes are those of what the document shows.
func exampleManifest(t *testing.T, declaration string) *manifest.Manifest {
	t.Helper()
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "SOUL.md"), exampleSoul)
	writeFile(t, filepath.Join(home, "USER.md"), " \n")
	eng := exampleEngine(t, declaration, home)
	turn, err := eng.BeginTurn(t.Context(), phases.Context{
		WorkspaceID: "shop", ThreadID: "customer-7", TurnID: "turn-3", SessionID: "monday", Mode: phases.ModeAgent,
	})
	if err != nil {
		t.Fatal(err)
	}
	in := runtime.CompileInput{
		Provider: compiler.Anthropic, Model: "claude-opus-5", ToolCalling: true,
		Facts: compiler.Facts{TimeZone: "Europe/Berlin"}, Host: compiler.HostTexts{ToolRecovery: true},
	}
	first, err := turn.Compile(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "ticket_close", Arguments: json.RawMessage(`{"ticket":12}`)}); phases.CodeOf(err) != phases.CauseForbidden {
		t.Fatalf("the hidden tool answers %v", err)
	}
	writeFile(t, filepath.Join(home, "SOUL.md"), exampleSoul+exampleLesson)
	second, err := turn.Compile(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	pinTimes(first.Manifest)
	pinTimes(second.Manifest)
	if err := manifest.Seal(first.Manifest, nil, nil); err != nil {
		t.Fatal(err)
	}
	last := first.Manifest.Link()
	if err := manifest.Seal(second.Manifest, &last, nil); err != nil {
		t.Fatal(err)
	}
	if err := manifest.Validate(second.Manifest); err != nil {
		t.Fatal(err)
	}
	return second.Manifest
}

// exampleEngine has the document's plugins inside, so that nothing differs between
// two machines.
func exampleEngine(t *testing.T, declaration, home string) *runtime.Engine {
	t.Helper()
	cfg, err := config.Loader{LookupEnv: environment}.Parse([]byte(declaration), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	counter, err := history.NewCounter(history.CounterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	o := runtime.Options{
		Build: "0.1.0", InProcess: map[string]runtime.Plugin{}, PersonaDir: home, CountTokens: counter.Count, TokenizerName: string(counter.Encoding()),
		Now: func() time.Time { return now }, Entropy: rand.NewChaCha8([32]byte{}), CacheRules: exampleRules(t),
	}
	for _, p := range cfg.Plugins {
		if o.InProcess[p.Name], err = firstParty().New(p.Builtin); err != nil {
			t.Fatal(err)
		}
	}
	return newEngine(t, cfg, o)
}

// exampleRules are those of the providers, as the command has them.
func exampleRules(t *testing.T) func(provider, model string) (compiler.CacheRules, bool) {
	t.Helper()
	table, err := compiler.LoadCacheFacts()
	if err != nil {
		t.Fatal(err)
	}
	return table.Rules
}

// pinTimes replaces what was measured.
func pinTimes(m *manifest.Manifest) {
	for i := range m.Runs {
		if m.Runs[i].Attempts > 0 {
			m.Runs[i].DurationMS = 0.25
		}
		m.Runs[i].QueueMS = 0
	}
	m.Budgets.Turn.UsedMS = 1.5
	for i := range m.Budgets.Phases {
		m.Budgets.Phases[i].UsedMS = 0.3
	}
}

// piece is a part of the example in the document: which fields, and the block
// that shows them.
var piece = regexp.MustCompile("(?m)^<!-- example: (.+) -->\n```json\n((?s:.*?))```$")

// TestManifestExample makes the example of docs/MANIFEST.md anew and compares the
// pieces that the document shows. With -update it writes them.
func TestManifestExample(t *testing.T) {
	t.Parallel()

	const name = "docs/MANIFEST.md"
	doc := document{name, text(t, name)}
	var record map[string]json.RawMessage
	data, err := json.Marshal(exampleManifest(t, exampleDeclaration(t, doc)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	rewritten := piece.ReplaceAllStringFunc(doc.text, func(old string) string {
		m := piece.FindStringSubmatch(old)
		var members []member
		for field := range strings.FieldsSeq(m[1]) {
			key, value := pick(t, record, field)
			shown[key] = true
			members = append(members, member{key, value})
		}
		want := layout(members, 0) + "\n"
		if m[2] != want {
			t.Errorf("%s: the example's %s is\n%s\nand the document says\n%s", name, m[1], want, m[2])
		}
		return strings.Replace(old, m[2], want, 1)
	})
	for key := range record {
		if !shown[key] && key != "plugins" && key != "policies" {
			t.Errorf("%s: the example does not show %s", name, key)
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root(t), filepath.FromSlash(name)), []byte(rewritten), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// exampleDeclaration is the document's configuration.
func exampleDeclaration(t *testing.T, d document) string {
	t.Helper()
	for _, b := range blocks(d) {
		if b.lang == "yaml" {
			return b.text
		}
	}
	t.Fatalf("%s has no configuration", d.name)
	return ""
}

// pick returns a field of the record by its selector: a name, or a list with the
// numbers of the rows to show, as in runs[1,3].
func pick(t *testing.T, record map[string]json.RawMessage, selector string) (key string, value json.RawMessage) {
	t.Helper()
	key, numbers, some := strings.Cut(strings.TrimSuffix(selector, "]"), "[")
	value, ok := record[key]
	if !ok {
		t.Fatalf("a manifest has no %s", key)
	}
	if !some {
		return key, value
	}
	var rows, picked []json.RawMessage
	if err := json.Unmarshal(value, &rows); err != nil {
		t.Fatal(err)
	}
	for number := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(rows) {
			t.Fatalf("%s: %s has %d rows", selector, key, len(rows))
		}
		picked = append(picked, rows[n])
	}
	value, err := json.Marshal(picked)
	if err != nil {
		t.Fatal(err)
	}
	return key, value
}

// member is one member of an object.
type member struct {
	key   string
	value json.RawMessage
}

// width is how wide a piece may be.
const width = 118

// layout writes an object: on one line where it fits, else filled line by line.
func layout(members []member, indent int) string {
	items := make([]func(indent int) string, len(members))
	for i, m := range members {
		items[i] = func(indent int) string {
			key := strconv.Quote(m.key) + ": "
			return key + value(m.value, indent+len(key))
		}
	}
	return fill("{", items, "}", indent)
}

// value writes any value. Members keep their order.
func value(raw json.RawMessage, indent int) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if delim, ok := open.(json.Delim); err != nil || !ok || (delim != '{' && delim != '[') {
		return string(raw)
	}
	var members []member
	var items []func(int) string
	for dec.More() {
		var m member
		if open == json.Delim('{') {
			key, _ := dec.Token() // the value was marshalled here
			m.key = fmt.Sprint(key)
		}
		_ = dec.Decode(&m.value)
		members = append(members, m)
		items = append(items, func(indent int) string { return value(m.value, indent) })
	}
	if open == json.Delim('{') {
		return layout(members, indent)
	}
	return fill("[", items, "]", indent)
}

// fill writes what stands between brackets. What does not fit on its line begins
// another one.
func fill(open string, items []func(indent int) string, end string, indent int) string {
	var b strings.Builder
	b.WriteString(open)
	at := indent + 1
	for i, item := range items {
		text := item(indent + 1)
		switch {
		case i == 0:
		case at+len(text)+2 > width || strings.Contains(text, "\n"):
			b.WriteString(",\n" + strings.Repeat(" ", indent+1))
			at = indent + 1
		default:
			b.WriteString(", ")
			at += 2
		}
		b.WriteString(text)
		at += len(text)
		if strings.Contains(text, "\n") {
			at = width // nothing follows on its last line
		}
	}
	b.WriteString(end)
	return b.String()
}
