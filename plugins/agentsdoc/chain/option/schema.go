package option

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// WordSchemas are the schemas of this package's words, for the inference of
// schemas of types that hold them. The map is the caller's.
func WordSchemas() map[reflect.Type]*jsonschema.Schema {
	m := map[reflect.Type]*jsonschema.Schema{}
	AddWords(m, PresetDefault, PresetCodex, PresetCodelia)
	AddWords(m, OverrideFallsThrough, OverrideShadows)
	AddWords(m, TrustAll, TrustListed, TrustNone)
	AddWords(m, UntrustedNames, UntrustedText)
	AddWords(m, LayoutDelimited, LayoutJoined, LayoutTitled)
	AddWords(m, PlaceSystem, PlaceUserMessage, PlaceSystemMessage)
	AddWords(m, DeliverBody, DeliverReminder, DeliverOff)
	AddWords(m, ChangedByHash, ChangedByTimeOrHash, ChangedNeverResolved)
	return m
}

// AddWords adds the schema of a type whose values are the words.
func AddWords[T ~string](m map[reflect.Type]*jsonschema.Schema, words ...T) {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range words {
		s.Enum = append(s.Enum, string(word))
	}
	m[reflect.TypeFor[T]()] = s
}
