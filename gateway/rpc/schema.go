package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOr returns the given schema, else that of a Go type.
func schemaOr(given *jsonschema.Schema, t reflect.Type, special map[reflect.Type]*jsonschema.Schema) (*jsonschema.Schema, error) {
	switch {
	case given != nil:
		return given, nil
	case t == nil:
		return nil, errors.New("there is no schema")
	}
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	}
	addNullable(types, t, map[reflect.Type]bool{})
	maps.Copy(types, special)
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	denull(s)
	return s, nil
}

// addNullable finds strings with a JSON of their own in which the empty one is
// null, which reflection does not see.
func addNullable(types map[reflect.Type]*jsonschema.Schema, t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		addNullable(types, t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			addNullable(types, f.Type, seen)
		}
	case reflect.String:
		if m, ok := reflect.TypeAssert[json.Marshaler](reflect.Zero(t)); ok {
			if text, err := m.MarshalJSON(); err == nil && string(text) == "null" {
				types[t] = &jsonschema.Schema{Types: []string{"null", "string"}}
			}
		}
	default: // nothing in it
	}
}

// denull makes lists lists: reflection allows null for every slice, but what is
// empty here is [].
func denull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && slices.Contains(s.Types, "array") {
		s.Type, s.Types = "array", nil
	}
	denull(s.Items)
	denull(s.AdditionalProperties)
	for _, p := range s.Properties {
		denull(p)
	}
}

// methodDoc and the types below are the document that Schema returns.
type methodDoc struct {
	Doc    string             `json:"description"`
	Right  Right              `json:"right,omitempty"`
	Params *jsonschema.Schema `json:"params"`
	Result *jsonschema.Schema `json:"result"`
}

type notificationDoc struct {
	Doc    string             `json:"description"`
	Params *jsonschema.Schema `json:"params"`
}

type document struct {
	Schema        string                     `json:"$schema"`
	Title         string                     `json:"title"`
	Doc           string                     `json:"description"`
	Methods       map[string]methodDoc       `json:"methods"`
	Notifications map[string]notificationDoc `json:"notifications"`
	Errors        []codeDoc                  `json:"errors"`
}

// Schema returns one document about everything that can be called or comes by
// itself: methods with the JSON Schemas of their params and result, notifications,
// and the errors. It is the same bytes for the same methods.
func (s *Server) Schema() (json.RawMessage, error) {
	doc := document{
		Schema:  "https://json-schema.org/draft/2020-12/schema",
		Title:   "Grapnel gateway",
		Doc:     "JSON-RPC 2.0 over POST /rpc and WebSocket /ws. Each method's params and result, each notification's params, and the errors: number is the error's code in JSON-RPC, code is its data.code.",
		Methods: make(map[string]methodDoc, len(s.methods)), Notifications: make(map[string]notificationDoc, len(s.notifications)),
		Errors: codes(),
	}
	for name, m := range s.methods {
		doc.Methods[name] = methodDoc{m.Doc, m.Right, m.Params, m.Result}
	}
	for _, n := range s.notifications {
		doc.Notifications[n.Name] = notificationDoc{n.Doc, n.Params}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("rpc: schema: %w", err)
	}
	return text, nil
}
