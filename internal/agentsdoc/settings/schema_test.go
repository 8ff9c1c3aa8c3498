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

// generateSchema makes the schema from the types.
func generateSchema() (*jsonschema.Schema, error) {
	special := chain.WordSchemas()
	chain.AddWords(special, SourceFiles, SourceTree, SourceBoth)
	chain.AddWords(special, SubtasksInherit, SubtasksManagedOnly, SubtasksNone)
	special[reflect.TypeFor[Global]()] = &jsonschema.Schema{
		OneOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "string", MinLength: new(1)}},
	}
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
