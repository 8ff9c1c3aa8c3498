package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/phases"
)

// Patterns, for editors, of texts that the decoder reads with code.
const (
	durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`
	sizePattern     = `^[0-9]+(B|KB|MB|GB|KiB|MiB|GiB)$`
	customPhase     = `^x\.[^.]+\.[^.]+`
)

// Schema returns the JSON Schema of grapnel.yaml (draft 2020-12), for editors. It
// has the types and rules of [Parse], but not what concerns several plugins.
func Schema() json.RawMessage {
	return schemaOf(reflect.TypeFor[Config](), keyRules, "grapnel.yaml", "The configuration of Grapnel.")
}

// TokensSchema returns the JSON Schema of a file of tokens, for editors.
func TokensSchema() json.RawMessage {
	return schemaOf(reflect.TypeFor[Tokens](), tokenRules, "tokens", "The tokens of a gateway's clients.")
}

func schemaOf(file reflect.Type, rules map[string]rule, title, description string) json.RawMessage {
	g := &generator{rules: rules, defs: map[string]*jsonschema.Schema{}}
	root := g.structure(file)
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = title
	root.Description = description
	root.Defs = g.defs
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // the schema is fixed; a test covers it
	}
	return out
}

// generator makes schemas of Go types. Long and frequent ones are definitions.
type generator struct {
	rules map[string]rule
	defs  map[string]*jsonschema.Schema
}

func (g *generator) define(name string, build func() *jsonschema.Schema) *jsonschema.Schema {
	if g.defs[name] == nil {
		g.defs[name] = build()
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

func (g *generator) schema(t reflect.Type, r rule) *jsonschema.Schema {
	s := g.special(t, r)
	if s == nil {
		s = g.byKind(t, r)
	}
	s.Description = r.doc
	return s
}

func (g *generator) special(t reflect.Type, r rule) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[phases.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern, Examples: []any{"250ms", "2s"}}
	case reflect.TypeFor[Size]():
		return &jsonschema.Schema{Type: "string", Pattern: sizePattern, Examples: []any{"64KiB", "256MiB"}}
	case reflect.TypeFor[Secret]():
		return &jsonschema.Schema{Type: "string", Pattern: r.pattern}
	case reflect.TypeFor[phases.OnFailure]():
		return g.define("on_failure", g.onFailure)
	case reflect.TypeFor[phases.Contributions]():
		return optional(&jsonschema.Schema{Type: "array", Items: g.define("contribution", g.contribution)})
	case reflect.TypeFor[phases.Phase]():
		return g.define("phase", phaseSchema)
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		if r.object {
			return optional(&jsonschema.Schema{Type: "object"})
		}
		return &jsonschema.Schema{}
	}
	return nil
}

func (g *generator) byKind(t reflect.Type, r rule) *jsonschema.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return g.schema(t.Elem(), r)
	case reflect.Struct:
		return optional(g.element(t))
	case reflect.Map:
		s := &jsonschema.Schema{Type: "object", AdditionalProperties: g.schema(t.Elem(), rule{})}
		if t.Key() == reflect.TypeFor[phases.Phase]() {
			s.PropertyNames = g.define("phase", phaseSchema)
		}
		return optional(s)
	case reflect.Slice:
		items := g.element(t.Elem())
		if items.Type == "string" {
			items.Pattern = r.pattern
		}
		return optional(&jsonschema.Schema{Type: "array", Items: items})
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int:
		s := &jsonschema.Schema{Type: "integer"}
		if r.bounded {
			s.Minimum = new(float64(r.low))
		}
		if r.bounded && r.high < 1<<53 {
			s.Maximum = new(float64(r.high))
		}
		return s
	case reflect.String:
		return &jsonschema.Schema{Type: "string", Pattern: r.pattern, Enum: values(r.wordsFor(t))}
	default:
		panic(fmt.Sprintf("config: no schema for %v", t)) // a test makes the schema
	}
}

// element returns the schema of a list's element, which must have a value.
func (g *generator) element(t reflect.Type) *jsonschema.Schema {
	if t.Kind() == reflect.Struct {
		return g.define(defName(t), func() *jsonschema.Schema { return g.structure(t) })
	}
	return g.schema(t, rule{})
}

// optional accepts a list or mapping without a value, as it is when all entries are commented out.
func optional(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Type != "" {
		s.Types, s.Type = []string{s.Type, "null"}, ""
		return s
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
}

func (g *generator) structure(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing()}
	for _, f := range fieldsOf(t) {
		r := g.rules[f.owner+"."+f.key]
		s.Properties[f.key] = g.schema(f.typ, r)
		s.PropertyOrder = append(s.PropertyOrder, f.key)
		if r.required {
			s.Required = append(s.Required, f.key)
		}
	}
	if t == reflect.TypeFor[Plugin]() {
		s.Not = &jsonschema.Schema{Required: []string{"builtin", "command"}}
		s.DependentRequired = map[string][]string{}
		for _, key := range commandKeys() {
			s.DependentRequired[key] = []string{"command"}
		}
	}
	return s
}

func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func (g *generator) onFailure() *jsonschema.Schema {
	word := func() *jsonschema.Schema { return g.schema(reflect.TypeFor[phases.FailureWord](), rule{}) }
	byCause := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing()}
	for _, cause := range append([]string{"default"}, texts(phases.FailureCauses()...)...) {
		byCause.Properties[cause] = word()
		byCause.PropertyOrder = append(byCause.PropertyOrder, cause)
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{word(), byCause}}
}

func (g *generator) contribution() *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, kind := range phases.Kinds() {
		of := g.structure(reflect.TypeOf(newContribution(kind)).Elem())
		of.Properties["kind"] = &jsonschema.Schema{Const: new(any(string(kind))), Description: "The kind of contribution."}
		of.PropertyOrder = slices.Insert(of.PropertyOrder, 0, "kind")
		of.Required = slices.Insert(of.Required, 0, "kind")
		s.AnyOf = append(s.AnyOf, of)
	}
	return s
}

func phaseSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Enum: values(phases.Standard().Names())},
		{Type: "string", Pattern: customPhase},
	}}
}

func defName(t reflect.Type) string {
	if t == reflect.TypeFor[phases.Override]() {
		return "subscription"
	}
	return strings.ToLower(t.Name())
}

func values(words []string) []any {
	var out []any
	for _, w := range words {
		out = append(out, w)
	}
	return out
}
