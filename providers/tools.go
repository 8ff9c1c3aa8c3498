package providers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// Tool is a tool's definition, ready to be sent.
type Tool struct {
	// Name is the name on the wire; see [Names].
	Name        string
	Description string
	// Schema is a JSON Schema of type object in canonical JSON. It is not decoded,
	// because encoders of SDKs write a json.Number as a string.
	Schema json.RawMessage
	// Text is the whole definition as canonical JSON, for counting and hashing.
	Text string
}

// layTools sorts tools and makes their names and schemas canonical.
func (l *Layout) layTools(tools []phases.Tool, rules Rules) error {
	sorted := slices.SortedFunc(slices.Values(tools), func(a, b phases.Tool) int { return strings.Compare(a.Name, b.Name) })
	l.Names = Names{rules: rules, real: map[string]string{}}
	for i := range sorted {
		t := &sorted[i]
		wire := l.Names.Wire(t.Name)
		if other, taken := l.Names.real[wire]; taken {
			return fmt.Errorf("tools %q and %q would both be called %q", other, t.Name, wire)
		}
		l.Names.real[wire] = t.Name
		if wire != t.Name {
			l.Warnf(CodeToolRenamed, "the tool %s is called %s: the provider does not accept its name", t.Name, wire)
		}
		out := Tool{Name: wire, Description: t.Description}
		if err := out.define(t.InputSchema); err != nil {
			return fmt.Errorf("tool %q: input schema: %w", t.Name, err)
		}
		l.Tools = append(l.Tools, out)
	}
	return nil
}

// define fills in the schema and the text. A missing schema means no arguments, a missing type "object".
func (t *Tool) define(raw json.RawMessage) error {
	schema := map[string]json.RawMessage{"properties": json.RawMessage(`{}`)}
	if len(raw) > 0 {
		schema = nil
		if err := json.Unmarshal(raw, &schema); err != nil {
			return err
		}
	}
	object := json.RawMessage(`"object"`)
	switch kind := schema["type"]; {
	case schema == nil:
		return errors.New("want an object, got null")
	case kind == nil:
		schema["type"] = object
	case !bytes.Equal(kind, object):
		return fmt.Errorf("want type object, got %s", kind)
	}
	var err error
	if t.Schema, err = canonical(schema); err != nil {
		return err
	}
	text, err := canonical(map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Schema})
	t.Text = string(text)
	return err
}

// canonical encodes what was decoded from JSON.
func canonical(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return digest.JSON(nil, raw)
}

// Names translates names of tools. A host translates the name that a model calls back.
type Names struct {
	rules Rules
	real  map[string]string
}

// Wire returns the name for the provider: characters that it does not accept become "_",
// and a name that is too long loses its end.
func (n Names) Wire(name string) string {
	wire := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			r == '_' || r == '-' || strings.ContainsRune(n.rules.NameChars, r) {
			return r
		}
		return '_'
	}, name)
	limit := cmp.Or(n.rules.NameMax, 64)
	return wire[:min(len(wire), limit)]
}

// Call returns a model's call. A tool that the model made up keeps its name.
func (n Names) Call(id, wire string, arguments json.RawMessage) history.Call {
	return history.Call{ID: id, Tool: cmp.Or(n.real[wire], wire), Arguments: arguments}
}

// Tool returns the tool of the request that the provider calls wire, false for a name that the model made up.
func (n Names) Tool(wire string) (string, bool) {
	name, ok := n.real[wire]
	return name, ok
}
