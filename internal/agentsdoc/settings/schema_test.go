package settings

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

var update = flag.Bool("update", false, "write schema.json anew")

func TestSchemaIsFresh(t *testing.T) {
	t.Parallel()

	s, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Indent(&want, append(data, '\n'), "", "  "); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(Schema()), want.String()); diff != "" {
		t.Errorf("schema.json is stale: run go test ./internal/agentsdoc/settings -run SchemaIsFresh -update (-got +want):\n%s", diff)
	}
}

func addWords[T ~string](m map[reflect.Type]*jsonschema.Schema, words ...T) {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range words {
		s.Enum = append(s.Enum, string(word))
	}
	m[reflect.TypeFor[T]()] = s
}

// generateSchema makes the schema from the types.
func generateSchema() (*jsonschema.Schema, error) {
	special := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Global](): {OneOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "string", MinLength: new(1)}}},
	}
	addWords(special, chain.Presets()...)
	addWords(special, chain.TrustAll, chain.TrustListed, chain.TrustNone)
	addWords(special, chain.UntrustedNames, chain.UntrustedSkip, chain.UntrustedText)
	addWords(special, chain.DeliverBody, chain.DeliverReminder, chain.DeliverOff)
	addWords(special, SourceFiles, SourceTree, SourceBoth)
	addWords(special, SubtasksInherit, SubtasksManagedOnly, SubtasksNone)
	s, err := jsonschema.For[Config](&jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	s.Title = "agentsdoc"
	for _, part := range []*jsonschema.Schema{
		s.Properties["budget"], s.Properties["resolver"], s.Properties["codelia"].Properties["initial"], s.Properties["codelia"].Properties["resolver"],
	} {
		for _, field := range part.Properties {
			if field.Type == "integer" || slices.Contains(field.Types, "integer") {
				field.Minimum = new(1.0)
			}
		}
	}
	s.Properties["budget"].Properties["total"].Minimum = new(0.0) // which turns it off
	return s, nil
}
