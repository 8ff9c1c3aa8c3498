package lazy

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// StateSchema is the JSON Schema of an encoded [State], made from the type.
func StateSchema() (*jsonschema.Schema, error) {
	s, err := schemaOf[State]()
	if err != nil {
		return nil, err
	}
	s.Properties["schema"].Const = jsonschema.Ptr[any](Schema)
	return s, nil
}

// TouchedSchema is the JSON Schema of [Touched], made from the type.
func TouchedSchema() (*jsonschema.Schema, error) { return schemaOf[Touched]() }

// ChangesSchema is the JSON Schema of [Changes], made from the type.
func ChangesSchema() (*jsonschema.Schema, error) { return schemaOf[Changes]() }

// ResumedSchema is the JSON Schema of [Resumed], made from the type.
func ResumedSchema() (*jsonschema.Schema, error) { return schemaOf[Resumed]() }

// schemaOf infers a schema with the words of this package and those that it
// builds on.
func schemaOf[T any]() (*jsonschema.Schema, error) {
	words := option.WordSchemas()
	option.AddWords(words, chain.SeverityError, chain.SeverityWarning, chain.SeverityInfo)
	option.AddWords(words, ReasonNew, ReasonUpdated, ReasonRemoved)
	option.AddWords(words, WhatDir, WhatRoot, WhatMarkers, WhatUpdated, WhatAdded, WhatRemoved)
	return jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: words})
}
