package settings

import (
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// Schema is the JSON Schema of [Config], made from the type and from the checks
// of its numbers and words.
func Schema() (*jsonschema.Schema, error) {
	special := option.WordSchemas()
	var c Config
	special[reflect.TypeFor[Source]()] = wordSchema(c.words(), "/source")
	special[reflect.TypeFor[Subtasks]()] = wordSchema(c.words(), "/subtasks")
	least := 1
	special[reflect.TypeFor[Global]()] = &jsonschema.Schema{
		OneOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "string", MinLength: &least}},
	}
	s, err := jsonschema.For[Config](&jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	s.Title = "agentsdoc"
	for _, n := range c.numbers() {
		field := s
		for name := range strings.SplitSeq(strings.TrimPrefix(n.pointer, "/"), "/") {
			field = field.Properties[name]
		}
		minimum := float64(n.least)
		field.Minimum = &minimum
	}
	return s, nil
}

// wordSchema is the schema of the field at a pointer.
func wordSchema(words []word, pointer string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range words {
		if w.pointer == pointer {
			for _, one := range w.words {
				s.Enum = append(s.Enum, one)
			}
		}
	}
	return s
}
