package main

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// pluginSchema is a schema that the plugin makes of its own type, in the form of
// ours.
func pluginSchema(own func() (*jsonschema.Schema, error)) func() (any, error) {
	return func() (any, error) {
		s, err := own()
		if err != nil {
			return nil, err
		}
		denull(s)
		s.Schema = draft
		return s, nil
	}
}

// agentsWords are the vocabularies in the results of the agents commands.
func agentsWords() map[reflect.Type]*jsonschema.Schema {
	m := option.WordSchemas()
	option.AddWords(m, chain.ScopeManaged, chain.ScopeGlobal, chain.ScopeProject, chain.ScopeLocal, chain.ScopeNested)
	option.AddWords(m, chain.StateKept, chain.StateTruncated, chain.StateOmitted, chain.StateSkipped, chain.StateDuplicate)
	option.AddWords(m, chain.SeverityError, chain.SeverityWarning, chain.SeverityInfo)
	return m
}
